"""Searches messages that the conversation no longer shows."""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Annotated, Any

from pydantic import Field

from activities.job.conversation import Conversation
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError

MAX_SHOWN = 8
BEFORE, AFTER = 150, 450
SEARCH_TOOL = "search_history"
"""Excluded from results, or earlier searches would match themselves."""
_STEP = re.compile(r"^s(\d+)c\d+$")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class HistoryMatch:
    words: int
    phase: int
    number: int
    label: str
    excerpt: str


@tool("job", effect="reads", local=False, seconds=120)
def search_history(
    context: ToolContext,
    query: Annotated[str, Field(min_length=1, max_length=300, description="Words to look for.")],
    phase: Annotated[int | None, Field(ge=1, description="Only this phase.")] = None,
) -> str:
    """Search everything said and returned in this job, also what is no longer shown.

    Finds your replies, the calls you made and their results in this phase and in earlier ones,
    those first in which most of the words occur, the newest first among equals.
    """
    words = {word.casefold() for word in _WORD.findall(query)}
    if not words:
        raise ToolError("search_history: the query has no words. Name what you look for.")
    present = context.state.phase.number
    matches: list[HistoryMatch] = []
    for number, conversation in _history_conversations(context):
        if phase is None or number == phase:
            matches += _search_conversation(conversation, number, words)
    matches.sort(key=lambda hit: (-hit.words, -hit.phase, -hit.number))
    if not matches:
        where = f"phase {phase}" if phase else f"phases 1 to {present}"
        return f"Nothing in {where} holds any of these words. Try others, or search_files."
    lines = [f"{len(matches)} messages found, the best {min(len(matches), MAX_SHOWN)}:"]
    lines += [f"\n{hit.label}\n{hit.excerpt}" for hit in matches[:MAX_SHOWN]]
    return "\n".join(lines)


def _history_conversations(context: ToolContext) -> Iterator[tuple[int, Conversation]]:
    yield context.state.phase.number, context.conversation
    for entry in reversed(context.history.children()):
        yield int(entry.path), Conversation(context.history.subfolder(entry.path))


def _search_conversation(
    conversation: Conversation, phase: int, words: set[str]
) -> Iterator[HistoryMatch]:
    called: dict[str, str] = {}
    step = 0
    for number, raw in enumerate(conversation.stored_messages()):
        message: dict[str, Any] = json.loads(raw)
        texts = [str(message.get("content") or "")]
        for call in message.get("tool_calls", []):
            function = call["function"]
            step = _history_step_number(call["id"])
            called[call["id"]] = function["name"]
            if function["name"] != SEARCH_TOOL:
                texts.append(f"{function['name']}({function['arguments']})")
        text = "\n".join(part for part in texts if part)
        if called.get(message.get("tool_call_id", "")) == SEARCH_TOOL:
            continue
        if number < 2 or not (hits := _history_word_positions(text, words)):
            # Skip the opening messages: search_files finds the files they are made from.
            continue
        if message["role"] == "tool":
            step = _history_step_number(message["tool_call_id"])
            what = f"result of {called.get(message['tool_call_id'], 'a tool')}"
        else:
            what = "your reply"
        label = f"phase {phase} · step {step} · {what}"
        yield HistoryMatch(
            len(hits), phase, number, label, _history_excerpt(text, min(hits.values()))
        )


def _history_word_positions(text: str, words: set[str]) -> dict[str, int]:
    """Map each word that occurs to the position of its first occurrence."""
    folded = text.casefold()
    positions = {word: position for word in words if (position := folded.find(word)) >= 0}
    if positions and len(folded) != len(text):
        # Case folding may lengthen text: ß becomes ss.
        ends = list(accumulate(len(letter.casefold()) for letter in text))
        return {word: bisect_right(ends, position) for word, position in positions.items()}
    return positions


def _history_excerpt(text: str, position: int) -> str:
    start, end = max(0, position - BEFORE), position + AFTER
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"


def _history_step_number(call_id: str) -> int:
    match = _STEP.match(call_id)
    return int(match.group(1)) if match else 0
