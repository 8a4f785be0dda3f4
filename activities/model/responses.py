"""The Responses API: request settings, and a reply assembled from events.

Nothing is stored at the provider (`store: false`, no `previous_response_id`), so a rewind of the
job is one for the model as well. A reply's items go back as they came in
`response.output_item.done`: with their ids, and reasoning with its `encrypted_content`. How they
are put together is in `response_items`.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import from_json

from activities.job.conversation_calls import MIXED_UP
from activities.model.call_assembly import ReadCall
from activities.model.endpoint_wordings import CUT_FINISHES
from activities.model.response_items import (
    CALL,
    MESSAGE,
    REASONING,
    ItemEvent,
    collect_items,
    item_events_of,
    item_events_of_output,
    item_message_text,
)
from activities.model.wire_reply import EMPTY_STREAM, WireReply, reply_event_kind
from activities.text.safe_text import replace_surrogates
from config.schema.model_settings import ModelConfig

ENCRYPTED = "reasoning.encrypted_content"
MAX_ITEM_CHARACTERS = 2_000_000
BEGINS = frozenset({"response.created", "response.queued", "response.in_progress"})
SUMMARY = "response.reasoning_summary"
"""Prefixes of events about output that the model does not show."""
ENDS = frozenset({"response.completed", "response.incomplete", "response.done"})
ENDED_EARLY = "the stream ended before the reply was complete"


def response_settings(model: ModelConfig) -> dict[str, Any]:
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


@dataclass
class ResponseReply(WireReply):
    prompt_count = "input_tokens"
    item_events: list[ItemEvent] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    delta_characters: int = 0
    """Characters received in pieces, whatever they are pieces of."""
    is_whole: bool = False
    _items: list[dict[str, Any]] | None = None

    def add(self, event: dict[str, Any], name: str = "") -> None:
        kind = reply_event_kind(event, name)
        self._items = None
        if isinstance(number := event.get("sequence_number"), int):
            self.seen.add(number)
        if isinstance(delta := event.get("delta"), str):
            self.delta_characters += len(delta)
        if kind == "response.output_item.added":
            self.is_thinking = (event.get("item") or {}).get("type") == REASONING
        elif not kind.startswith(SUMMARY):
            self.is_thinking = kind in BEGINS
        self.item_events += item_events_of(event, kind)
        if kind in ENDS:
            self.add_whole(event["response"])

    def add_whole(self, answer: dict[str, Any]) -> None:
        """Read a whole reply. Raises ValueError for anything else."""
        status = answer.get("status")
        if status in ("failed", "cancelled", "in_progress", "queued"):
            raise ValueError(status)
        self.usage, self.model = answer.get("usage"), answer.get("model") or ""
        self.item_events += item_events_of_output(answer.get("output") or [])
        self._items = None
        self.is_over = self.is_whole = True
        if status == "incomplete":
            reason = str((answer.get("incomplete_details") or {}).get("reason") or "length")
            self.finish = "length" if reason in CUT_FINISHES else reason
        else:
            self._end()

    def end_stream(self) -> None:
        super().end_stream()
        if not self.finish:
            self._end()
            self.is_whole = bool(self._calls or self.text)

    def close(self) -> None:
        items = collect_items(self.item_events)
        if items and items[-1].type in (CALL, MESSAGE):
            self.is_whole = all(item.is_whole(self.seen) for item in items)
            self._end()

    def _end(self) -> None:
        self.finish = "tool_calls" if self._calls else "stop"

    @property
    def is_complete(self) -> bool:
        return self.is_whole

    @property
    def partial_characters(self) -> int:
        return self.delta_characters

    @property
    def cut_message(self) -> str:
        return EMPTY_STREAM if self.is_over else ENDED_EARLY

    @property
    def items(self) -> list[dict[str, Any]]:
        if self._items is None:
            self._items = [item.read(self.seen) for item in collect_items(self.item_events)]
        return self._items

    @property
    def _calls(self) -> list[dict[str, Any]]:
        return self._items_of_type(CALL)

    def read_calls(self, tools: frozenset[str]) -> list[ReadCall]:
        return [ReadCall(str(call.get("name") or ""), call["arguments"]) for call in self._calls]

    @property
    def text(self) -> str:
        return "".join(map(item_message_text, self._items_of_type(MESSAGE)))

    @property
    def is_refusal(self) -> bool:  # type: ignore[override]
        return any(
            part.get("refusal")
            for message in self._items_of_type(MESSAGE)
            for part in message.get("content") or []
            if isinstance(part, dict)
        )

    @property
    def reasoning_text(self) -> str:
        parts = [
            part
            for item in self._items_of_type(REASONING)
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
        if self.finish not in ("stop", "tool_calls") or not (self._calls or self.text.strip()):
            return []
        if not items or items[-1].get("type") == REASONING:
            return []
        if not all(map(_is_returnable_response_item, items)):
            return []
        ids = [call["call_id"] for call in self._calls]
        if len(set(ids)) < len(ids):
            return []
        written = replace_surrogates(json.dumps(items, ensure_ascii=False))
        return list(json.loads(written)) if len(written) <= MAX_ITEM_CHARACTERS else []

    def _items_of_type(self, kind: str) -> list[dict[str, Any]]:
        return [item for item in self.items if item.get("type") == kind]


def _is_returnable_response_item(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    if kind == REASONING:
        return bool(item.get("encrypted_content") or item.get("content"))
    if kind != CALL:
        return True
    arguments = item["arguments"]
    if not (item.get("call_id") and isinstance(item["call_id"], str)) or MIXED_UP in arguments:
        return False
    with suppress(ValueError):
        return isinstance(from_json(arguments, allow_inf_nan=False), dict)
    return False
