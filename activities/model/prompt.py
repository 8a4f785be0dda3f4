"""What the model is sent: the order is the provider's prompt cache's.

System prompt, first message and conversation only grow within a phase; the todo list, which
changes, is the last message and is stored nowhere.
"""

from __future__ import annotations

import json
from typing import Any

from activities.snapshot import Snapshot
from activities.tools.offering import offer
from config.schema import AgentConfig
from protocol.state import JobState, Phase, PhaseKind

RULE = "═" * 8
SUMMARY_CHARACTERS = 60_000
MESSAGE_CHARACTERS = 1_000


def request_body(snapshot: Snapshot, correction: str | None) -> bytes:
    """The body of the model call, put together from stored message bytes.

    Nothing of the conversation is parsed again, so the cost of a call does not grow with it
    beyond copying bytes.
    """
    last = {"role": "user", "content": render_todos(snapshot, correction)}
    fixed = _fixed(snapshot.config_id, snapshot.config, snapshot.state)
    messages = b",".join([*snapshot.conversation.wire(), _json(last)])
    return b'%b,"messages":[%b]}' % (fixed, messages)


def summary_body(snapshot: Snapshot) -> bytes:
    """The request for a phase's archive summary: a prompt of its own, no tools."""
    messages = snapshot.conversation.messages()[1:]
    told = "\n\n".join(_told(message) for message in messages)
    half = SUMMARY_CHARACTERS // 2
    if len(told) > SUMMARY_CHARACTERS:
        told = f"{told[:half]}\n[TRUNCATED the middle of the phase]\n{told[-half:]}"
    phase = snapshot.state.phase
    asked = f'Phase {phase.number} ({phase.kind}) "{phase.name}":\n\n{told}'
    body = _settings(snapshot.config)
    body["messages"] = [
        {"role": "system", "content": snapshot.config.templates["archive_summary"]},
        {"role": "user", "content": asked},
    ]
    return _json(body)


def _told(message: dict[str, Any]) -> str:
    """A message of the conversation as a line of a transcript."""
    text = str(message.get("content") or "")[:MESSAGE_CHARACTERS]
    calls = [
        f"{call['function']['name']}({call['function']['arguments'][:MESSAGE_CHARACTERS]})"
        for call in message.get("tool_calls", [])
    ]
    return f"{message['role']}: " + " ".join([text, *calls]).strip()


def render_todos(snapshot: Snapshot, correction: str | None) -> str:
    """The active list as the model sees it on every turn."""
    phase = snapshot.state.phase
    place = f" · plan {phase.plan_position} of {phase.plan_total}" if phase.plan_total else ""
    lines = [
        f'{RULE} Todo list · {phase.kind} phase {phase.number} "{phase.name}"{place} {RULE}',
        *todo_lines(phase),
        f"Progress: {len(phase.todos) - phase.open_count}/{len(phase.todos)}",
    ]
    if scope := snapshot.state.scope:
        closed = sum(item.status != "open" for item in scope)
        lines.append(f"Scope: {closed} of {len(scope)} items closed")
    if phase.current:
        lines.append(f"Do todo {phase.current.id}, then call `todo_complete`.")
    lines.append(RULE)
    if correction:
        lines.append(correction)
    return "\n".join(lines)


def todo_lines(phase: Phase) -> list[str]:
    """One line a todo: done, current or open."""
    current = phase.current
    return [
        f"{'☑' if todo.done else '▶' if todo is current else '☐'} {todo.id}. {todo.content}"
        for todo in phase.todos
    ]


_fixed_parts: dict[tuple[str, PhaseKind, tuple[str, ...]], bytes] = {}


def _fixed(config_id: str, config: AgentConfig, state: JobState) -> bytes:
    """Settings and tools up to the messages: the same bytes for every call of a phase.

    But for tools that were found, which are added at the end of the list.
    """
    key = (config_id, state.phase.kind, tuple(state.found))
    if key not in _fixed_parts:
        if len(_fixed_parts) > 256:
            _fixed_parts.clear()
        tools = [entry.schema for entry in offer(config, state.phase.kind, state.found).offered]
        _fixed_parts[key] = _json({**_settings(config), "tools": tools})[:-1]
    return _fixed_parts[key]


def _settings(config: AgentConfig) -> dict[str, Any]:
    model = config.model
    body: dict[str, Any] = {
        "model": model.name,
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_completion_tokens": model.max_output_tokens,
    }
    if model.temperature is not None:
        body["temperature"] = model.temperature
    if model.reasoning_effort:
        body["reasoning_effort"] = model.reasoning_effort
    return body


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
