"""The rehearsal model: works through a whole job by rules, from the requests alone."""

from __future__ import annotations

import json
import re
from typing import Any

from protocol.short_text import first_few
from rehearsal import (
    acceptance,
    formulation,
    generalist,
    mending,
    requirement_validation,
    strategic,
    team,
)
from rehearsal.procedure_replay import Steps, complete_procedure_todo, replay_next_reply
from rehearsal.request_view import (
    RequestView,
    is_judge_request,
    parse_request_view,
    request_message_text,
)
from rehearsal.wire import Reply, Request

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
    if acceptance.REVIEWER_TOOL in view.tools:
        return acceptance.review_statements(request)
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
    if view.agent == mending.AGENT:
        return mending.mend_by_examples(view)
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
