"""The rehearsal model: works through a whole job by rules, from the requests alone."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from protocol.short_text import first_few
from rehearsal import formulation, generalist, programmer, requirement_validation, strategic, team
from rehearsal.procedure_replay import Steps, complete_procedure_todo, replay_next_reply
from rehearsal.request_view import (
    RequestView,
    is_judge_request,
    parse_request_view,
    request_message_text,
)
from rehearsal.wire import Reply, Request

REVIEWER_TOOL = "judge_statements"
MAX_QUOTE = 200
LEAST_WORD = 4
"""Letters of a word that counts as content."""
LEAST_SHARED = 2
"""Words that a line shares with the statement that it speaks of; of a short one a third of them."""
_STATEMENT = re.compile(r"^([SBA]\d+(?:\.\d+)?) (?:\[[^\]\n]*\] )?(\S.*)$", re.MULTILINE)
_FILE = re.compile(r"^## ([^\n]+)\n\n(`{3,})\n(.*?)\n\2$", re.MULTILINE | re.DOTALL)
_FENCED = re.compile(r"^(`{3,})\n(.*?)\n\1$", re.MULTILINE | re.DOTALL)
_CHANGED = re.compile(r"^\+\+\+ b/(.+)$", re.MULTILINE)


def review_statements(request: Request) -> Reply:
    """Judge each statement of the request, with a line of a shown file as the quote."""
    text = "\n".join(request_message_text(message) for message in request["messages"][1:])
    listed, _, rest = text.partition("# Statements\n")[2].partition("\n# ")
    files = _parse_shown_files(rest.partition("The work")[2])
    verdicts = [_verdict(id_, words, files) for id_, words in _STATEMENT.findall(listed)]
    return Reply(calls=[(REVIEWER_TOOL, {"verdicts": verdicts})])


def _parse_shown_files(work: str) -> dict[str, list[str]]:
    """Return the lines of each shown file, or those that a diff adds to it."""
    files = {path: body.splitlines() for path, _, body in _FILE.findall(work)}
    if files or not (diff := _FENCED.search(work)):
        return files
    parts = _CHANGED.split(diff[2])
    for path, body in zip(parts[1::2], parts[2::2], strict=True):
        files[path] = [line[1:] for line in body.splitlines() if line.startswith("+")]
    return files


def _verdict(id_: str, statement: str, files: dict[str, list[str]]) -> dict[str, str]:
    named = [lines for path, lines in files.items() if path in statement]
    for line in _quotable_lines(statement, named):
        return {"id": id_, "verdict": "met", "quote": line}
    words = _content_words(statement)
    least = min(LEAST_SHARED, (len(words) + 2) // 3)
    for line in _quotable_lines(statement, files.values()):
        if least and len(words & _content_words(line)) >= least:
            return {"id": id_, "verdict": "met", "quote": line}
    return {"id": id_, "verdict": "cannot tell"}


def _quotable_lines(statement: str, files: Iterable[list[str]]) -> Iterator[str]:
    """Yield the lines with words that are not those of the statement itself."""
    for lines in files:
        for line in lines:
            said = line.strip()
            if len(re.findall(r"\w", said)) >= LEAST_WORD and said not in statement:
                yield said[:MAX_QUOTE]


def _content_words(text: str) -> set[str]:
    """Return the words that say something, a plural as its singular."""
    words = (word.casefold() for word in re.findall(r"\w+", text) if len(word) >= LEAST_WORD)
    return {word.removesuffix("s") for word in words}


MAX_NAMED = 15
MAX_NOTES = 12
_CALL = re.compile(r"\b[a-z_]+\(\{")
_CHANGED = re.compile(r'\b(?:write_file|append_file|edit_file)\(\{"path":\s*"([^"]+)"')
_NOTES = re.compile(r'\btodo_complete\(\{"notes":\s*"((?:[^"\\]|\\.)+)')
_REFUSED = re.compile(r"^tool: Error", re.MULTILINE)


def rehearse(request: Request) -> Reply:
    """Reply to one request: the next calls of the current todo, or its completion."""
    if not request.get("tools"):
        return Reply(
            content="PASS" if is_judge_request(request) else rehearse_phase_summary(request)
        )
    view = parse_request_view(request)
    if REVIEWER_TOOL in view.tools:
        return review_statements(request)
    if view.current_todo is None:
        return complete_procedure_todo(view, "Every todo of the list is done.")
    return replay_next_reply(view, _choose_rehearsal_procedure(view, view.current_todo.text))


def rehearse_phase_summary(request: Request) -> str:
    """Summarise a phase by the files changed and the notes on todos in its conversation.

    The conversation is a list of messages, or a transcript in the text of one message.
    """
    transcript = "\n".join(map(_rehearsal_transcript_entry, request["messages"][1:]))
    calls = len(_CALL.findall(transcript))
    changed = list(dict.fromkeys(_CHANGED.findall(transcript)))
    notes = [_unescape_transcript_note(note)[:200] for note in _NOTES.findall(transcript)]
    errors = len(_REFUSED.findall(transcript))
    named = first_few([f"`{path}`" for path in changed], MAX_NAMED) or "none"
    lines = [f"Tool calls made: {calls}. Files changed: {named}."]
    if notes:
        lines += ["", "What came of the todos:", "", *(f"- {note}" for note in notes[-MAX_NOTES:])]
    lines += ["", f"Calls refused: {errors}." if errors else "No call was refused."]
    return "\n".join(lines)


def _rehearsal_transcript_entry(message: dict[str, Any]) -> str:
    calls = [
        f"{entry['function']['name']}({entry['function']['arguments']})"
        for entry in message.get("tool_calls") or []
    ]
    return f"{message.get('role')}: " + " ".join([request_message_text(message), *calls]).strip()


def _unescape_transcript_note(text: str) -> str:
    """Decode the inside of a JSON string, which may end in the middle of an escape."""
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _choose_rehearsal_procedure(view: RequestView, text: str) -> Steps:
    if view.agent == programmer.MENDER:
        return programmer.mend_by_examples(view)
    if view.kind == "strategic":
        return strategic.choose_strategic_procedure(view, text)
    todo_id = view.current_todo.id if view.current_todo else 0
    validating = (
        requirement_validation.is_validation_job(view)
        or "take_requirement" in view.tools | view.deferred
    )
    return (
        (
            requirement_validation.choose_validation_procedure(text)
            if validating
            else formulation.choose_formulation_procedure(text)
        )
        or team.team_role_procedure(view, text)
        or team.choose_team_procedure(text)
        or generalist.work_on_general_todo(view, todo_id, text)
    )
