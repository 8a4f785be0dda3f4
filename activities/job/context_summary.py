"""The summary that replaces old exchanges: its request, and the check of its content.

A summary that omits an open todo or a file changed in this phase is not accepted, since the agent
would continue as if they did not exist.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from activities.job.compaction_plan import SUMMARY_TOKENS
from activities.text.safe_text import cut_middle, replace_surrogates
from activities.text.tokens import clip_to_tokens, count_tokens
from protocol.phase import Phase
from protocol.todo_list import Todo

TEXT_CHARACTERS = 2_000
"""Most characters of one message, or one call's arguments, in the transcript to summarise."""
TRANSCRIPT_CHARACTERS = 240_000
TODO_CHARACTERS = 80
MAX_PATHS = 60
OLD_SUMMARY = "From an older summary, made before those calls; since then it may have changed:\n\n"
SUMMARY_PROMPT = """\
Phase {number} ({kind}): {name}

Open todos:
{todos}

Files changed in this phase:
{files}

Notes so far:
{before}

The conversation to be summarised:

{transcript}"""
RETRY_PROMPT = """\


Your last summary left out: {missing}. Write it again with these in it."""


@dataclass(frozen=True)
class RequiredSummaryMentions:
    todos: Sequence[Todo]
    paths: Sequence[str]

    def missing_from(self, summary: str) -> RequiredSummaryMentions:
        return RequiredSummaryMentions(
            [todo for todo in self.todos if not _summary_mentions_todo(summary, todo)],
            [path for path in self.paths if path not in summary],
        )

    def __bool__(self) -> bool:
        return bool(self.todos or self.paths)

    def __str__(self) -> str:
        return ", ".join([*(f"todo {todo.id}" for todo in self.todos), *self.paths])

    @property
    def text(self) -> str:
        todos = [f"- todo {todo.id}: {todo.content[:TODO_CHARACTERS]}" for todo in self.todos]
        lines = ["Open todos:", *todos] if todos else []
        lines += ["Files changed:", *(f"- {path}" for path in self.paths)] if self.paths else []
        return "\n".join(lines)


def required_summary_mentions(phase: Phase, changed: list[str]) -> RequiredSummaryMentions:
    paths = [replace_surrogates(path) for path in changed[-MAX_PATHS:]]
    return RequiredSummaryMentions(phase.open_todos, paths)


def summary_request(
    phase: Phase,
    required: RequiredSummaryMentions,
    before: str,
    messages: list[dict[str, Any]],
    missing: RequiredSummaryMentions | None,
) -> str:
    full_text = "\n\n".join(map(summary_transcript_line, messages))
    transcript = cut_middle(full_text, TRANSCRIPT_CHARACTERS, "[TRUNCATED the middle]")
    return SUMMARY_PROMPT.format(
        number=phase.number,
        kind=phase.kind,
        name=phase.name,
        todos="\n".join(f"- todo {todo.id}: {todo.content}" for todo in required.todos) or "none",
        files="\n".join(f"- {path}" for path in required.paths) or "none",
        before=before or "none",
        transcript=transcript,
    ) + (RETRY_PROMPT.format(missing=missing) if missing else "")


def summary_transcript_line(message: dict[str, Any], limit: int = TEXT_CHARACTERS) -> str:
    text = _clip_summary_source(str(message.get("content") or ""), limit)
    calls = [
        f"{call['function']['name']}({_clip_summary_source(call['function']['arguments'], limit)})"
        for call in message.get("tool_calls", [])
    ]
    return f"{message['role']}: " + " ".join([text, *calls]).strip()


def _clip_summary_source(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]} [TRUNCATED]"


def complete_context_summary(summary: str, required: RequiredSummaryMentions) -> str:
    """Return the summary with omitted items added, within its size limit."""
    missing_part = clip_to_tokens(
        required.missing_from(summary).text, SUMMARY_TOKENS // 2, "the todo list is below"
    )
    return _fit_summary(summary, missing_part)


def fallback_summary(
    before: str, messages: list[dict[str, Any]], required: RequiredSummaryMentions
) -> str:
    """Return a replacement for exchanges that no model could summarise: only the calls made."""
    calls = [
        f"{call['function']['name']} {call['function']['arguments'][:60]}"
        for message in messages
        for call in message.get("tool_calls", [])
    ]
    lines = ["Not summarised, since the model was not to be had. The last calls of it:"]
    news = "\n".join([*lines, *(f"- {call}" for call in calls[-20:])])
    replacement = "\n\n".join(
        (
            clip_to_tokens(news, SUMMARY_TOKENS // 3, "search_history finds them"),
            clip_to_tokens(required.text, SUMMARY_TOKENS // 3, "the todo list is below"),
        )
    )
    old = before.removeprefix(OLD_SUMMARY).strip()
    return _fit_summary(
        replacement,
        f"{OLD_SUMMARY}{clip_to_tokens(old, SUMMARY_TOKENS // 4, 'older')}" if old else "",
    )


def _fit_summary(text: str, last: str) -> str:
    """Join two parts within the size limit of a summary; the first is cut if necessary."""
    room, text = SUMMARY_TOKENS - count_tokens(last), text.strip()
    if count_tokens(text) > room:
        text = clip_to_tokens(text, room - 30, "search_history finds the rest")
    return "\n\n".join(part for part in (text, last) if part)


def _summary_mentions_todo(summary: str, todo: Todo) -> bool:
    if re.search(rf"\btodo\W{{0,3}}{todo.id}\b", summary, re.IGNORECASE):
        return True
    return " ".join(todo.content.split()).casefold() in " ".join(summary.split()).casefold()
