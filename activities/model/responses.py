"""The Responses API: request settings, and a reply assembled from events.

Nothing is stored at the provider (`store: false`, no `previous_response_id`), so a rewind of the
job is one for the model as well. A reply's items go back as they came in
`response.output_item.done`: with their ids, and reasoning with its `encrypted_content`.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from activities.text.safe_text import replace_surrogates
from config.schema.agent_sections import ModelConfig

ENCRYPTED = "reasoning.encrypted_content"
MAX_ITEM_CHARACTERS = 2_000_000
"""Most characters of items kept to be sent back."""
BEGINS = frozenset({"response.created", "response.queued", "response.in_progress"})
SUMMARY = "response.reasoning_summary"
"""Prefixes of events about output that the model does not show."""
ENDS = frozenset({"response.completed", "response.incomplete"})
FAILS = "response.failed"
FINISHES = {"max_output_tokens": "length"}
"""Reasons for an incomplete reply, mapped to Chat Completions where it has one."""


def response_settings(model: ModelConfig) -> dict[str, Any]:
    """Return the request without tools and input."""
    body: dict[str, Any] = {
        "model": model.name,
        "max_output_tokens": model.max_output_tokens,
        "store": False,
        "include": [ENCRYPTED],
    }
    if model.stream:
        body["stream"] = True
    if model.temperature is not None:
        body["temperature"] = model.temperature
    if model.reasoning_effort:
        body["reasoning"] = {"effort": model.reasoning_effort}
    return body


def response_event_failure(event: dict[str, Any]) -> object:
    """Return the failure in an event, or None."""
    kind = event.get("type")
    if kind == "error":
        return event.get("error") or event
    if kind != FAILS:
        return None
    return (event.get("response") or {}).get("error") or {"message": "the reply failed"}


@dataclass
class ResponseEvents:
    """A reply, as far as its events have come."""

    items: list[dict[str, Any]] = field(default_factory=list)
    """The output items in order."""
    finish: str = ""
    """The finish reason in terms of Chat Completions; empty until the end."""
    usage: object = None
    model: object = ""
    delta_characters: int = 0
    """Characters received in pieces, whatever they are pieces of."""
    is_thinking: bool = False
    """Whether the model is working on hidden output, so that silence means nothing."""

    @property
    def is_over(self) -> bool:
        return bool(self.finish)

    def add(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if isinstance(delta := event.get("delta"), str):
            self.delta_characters += len(delta)
        item = event.get("item") or {}
        if kind == "response.output_item.added":
            self.is_thinking = item.get("type") == "reasoning"
        elif not kind.startswith(SUMMARY):
            self.is_thinking = kind in BEGINS
        if kind == "response.output_item.done":
            self.items.append(item)
        elif kind in ENDS:
            self.read_response(event["response"])

    def read_response(self, response: dict[str, Any]) -> None:
        """Read a whole reply. Raises ValueError for anything else."""
        if response.get("status") in ("failed", "cancelled", "in_progress", "queued"):
            raise ValueError(response["status"])
        self.usage, self.model = response.get("usage"), response.get("model") or ""
        output = list(response.get("output") or [])
        # Some servers send no event for an item, or two; others leave the output out.
        if output and len(output) != len(self.items):
            self.items = output
        if response.get("status") == "incomplete":
            reason = str((response.get("incomplete_details") or {}).get("reason") or "length")
            self.finish = FINISHES.get(reason, reason)
        else:
            self.finish = "tool_calls" if self.calls else "stop"

    @property
    def calls(self) -> list[tuple[str, str]]:
        """Return the name and arguments of each call."""
        return [
            (str(call["name"]), _response_call_arguments(call))
            for call in self._items_of_type("function_call")
        ]

    @property
    def text(self) -> str:
        """Return the model's text, or its refusal."""
        return "".join(
            str(part.get("text") or part.get("refusal") or "") for part in self._message_parts
        )

    @property
    def is_refusal(self) -> bool:
        return any(part.get("refusal") for part in self._message_parts)

    @property
    def _message_parts(self) -> list[dict[str, Any]]:
        return [
            part
            for message in self._items_of_type("message")
            for part in message.get("content") or []
        ]

    @property
    def reasoning(self) -> str:
        """Return the readable part of its reasoning."""
        parts = [
            part
            for item in self._items_of_type("reasoning")
            for part in [*(item.get("summary") or []), *(item.get("content") or [])]
        ]
        return "\n\n".join(str(part.get("text") or "") for part in parts)

    def returnable_items(self) -> list[dict[str, Any]]:
        """Return the items if they can be sent back, else none: a reply goes back whole or in our
        form.

        A reply that was cut has reasoning without its consequence, broken arguments would be
        refused, and reasoning that is neither encrypted nor readable cannot be referred to.
        """
        items = self.items
        if self.finish not in ("stop", "tool_calls") or not (self.calls or self.text.strip()):
            return []
        if not items or items[-1].get("type") == "reasoning":
            return []
        if not all(map(_is_returnable_response_item, items)):
            return []
        ids = [call["call_id"] for call in self._items_of_type("function_call")]
        if len(set(ids)) < len(ids):
            return []
        written = replace_surrogates(json.dumps(items, ensure_ascii=False))
        return list(json.loads(written)) if len(written) <= MAX_ITEM_CHARACTERS else []

    def _items_of_type(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.items if item.get("type") == kind]


def _response_call_arguments(call: dict[str, Any]) -> str:
    arguments = call.get("arguments") or ""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def _is_returnable_response_item(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    if kind == "reasoning":
        return bool(item.get("encrypted_content") or item.get("content"))
    if kind != "function_call":
        return True
    arguments = item.get("arguments")
    if not (
        item.get("call_id") and isinstance(item["call_id"], str) and isinstance(arguments, str)
    ):
        return False
    with suppress(ValueError):
        return isinstance(from_json(arguments, allow_inf_nan=False), dict)
    return False
