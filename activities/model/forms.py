"""The forms in which a stored message is sent: one for each of the two APIs.

A message is stored in the form of Chat Completions. What its provider wants back unchanged lies
beside it, and is sent only to the endpoint and model that made it; any other gets the message as
if it had never been there.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from activities.job.conversation import MessageForm, to_wire
from activities.model.providers import maker_of
from activities.text.tokens import count_tokens
from config.schema.agent_sections import ModelConfig

PLAIN_FIELDS = ("reasoning_content", "reasoning")
SIGNED_FIELDS = ("reasoning_details", "thinking_blocks")
"""Fields of a message in which endpoints return reasoning and want it back: as text, and signed or
encrypted."""
OPAQUE_KEYS = frozenset({"encrypted_content", "data", "signature"})
"""Keys of what only the provider can read."""
OPAQUE_CHARACTERS = 16 / 3
"""Of base64 to a token: three bytes are four characters, and a token is about four bytes."""


@dataclass(frozen=True)
class ChatForm:
    """Of Chat Completions."""

    maker: str
    reasoning: bool | None
    """Whether reasoning is sent back; None: only what is signed or encrypted."""
    marks: str = "none"

    @property
    def key(self) -> Hashable:
        return "chat", self.maker, self.reasoning

    @property
    def verbatim(self) -> bool:
        return not self.reasoning

    def render(self, message: bytes, provider_data: bytes) -> bytes:
        data = _data_of_maker(provider_data, self.maker)
        fields, extras = _returned_fields(data, self.reasoning), data.get("extras", [])
        if not (fields or extras or self.reasoning):
            return message
        stored: dict[str, Any] = json.loads(message)
        if stored["role"] != "assistant":
            return message
        if self.reasoning:
            # An endpoint that demands it demands it of every reply, whoever made it.
            fields = fields or {PLAIN_FIELDS[0]: ""}
        for call, extra in zip(stored.get("tool_calls", []), extras, strict=False):
            if extra:
                call["extra_content"] = extra
        return to_wire({**stored, **fields})

    def with_mark(self, message: bytes) -> bytes:
        return _marked_text(message, "content", "text", self.marks)


@dataclass(frozen=True)
class ResponsesForm:
    """Of the Responses API: a message is one item of the input, a reply several."""

    maker: str
    items: bool
    """Whether the model's own items are sent back."""
    marks: str = "none"

    @property
    def key(self) -> Hashable:
        return "responses", self.maker, self.items

    @property
    def verbatim(self) -> bool:
        return False

    def render(self, message: bytes, provider_data: bytes) -> bytes:
        data = self._own_data(provider_data)
        if items := data.get("items"):
            return b",".join(map(to_wire, items))
        stored: dict[str, Any] = json.loads(message)
        return b",".join(map(to_wire, _message_items(stored, data.get("call_id"))))

    def with_mark(self, message: bytes) -> bytes:
        text = "output" if message.startswith(b'{"type":"function_call_output"') else "content"
        return _marked_text(message, text, "input_text", self.marks)

    def _own_data(self, provider_data: bytes) -> dict[str, Any]:
        return _data_of_maker(provider_data, self.maker) if self.items else {}


@dataclass(frozen=True)
class ReasoningWeights:
    """Of the reasoning that a model is sent back: by its configuration alone, so that a context has
    one size whatever a worker has learned."""

    maker: str
    reasoning: bool | None

    @property
    def key(self) -> Hashable:
        return self.maker, self.reasoning

    def tokens(self, provider_data: bytes, encoding: str) -> int:
        data = _data_of_maker(provider_data, self.maker)
        items = [] if self.reasoning is False else data.get("items", [])
        reasoned = [item for item in items if item.get("type") == "reasoning"]
        return _reasoning_tokens([*reasoned, _returned_fields(data, self.reasoning)], encoding)


def weights_of(model: ModelConfig) -> ReasoningWeights:
    """What of the reasoning counts for a model."""
    return ReasoningWeights(maker_of(model), model.send_reasoning)


def form_of(model: ModelConfig) -> MessageForm:
    """How messages are sent to a model, its settings being what the endpoint takes."""
    maker, marks = (
        maker_of(model),
        model.cache_marks if model.cache_marks in CACHE_MARKS else "none",
    )
    if model.api == "responses":
        return ResponsesForm(maker, model.send_reasoning is not False, marks)
    return ChatForm(maker, model.send_reasoning, marks)


def _data_of_maker(provider_data: bytes, maker: str) -> dict[str, Any]:
    if not provider_data:
        return {}
    data: dict[str, Any] = json.loads(provider_data)
    return data if data["maker"] == maker else {}


def _returned_fields(data: dict[str, Any], reasoning: bool | None) -> dict[str, Any]:
    """The fields that go back in a message of Chat Completions."""
    fields: dict[str, Any] = {} if reasoning is False else data.get("fields", {})
    if reasoning is None:
        return {name: fields[name] for name in SIGNED_FIELDS if name in fields}
    return fields


def _message_items(message: dict[str, Any], call_id: str | None) -> Iterator[dict[str, Any]]:
    """A message as items without ids: those are the provider's alone."""
    if message["role"] == "tool":
        yield {
            "type": "function_call_output",
            "call_id": call_id or message["tool_call_id"],
            "output": message["content"],
        }
        return
    if message["content"] is not None:
        yield {"type": "message", "role": message["role"], "content": message["content"]}
    for call in message.get("tool_calls", []):
        yield {"type": "function_call", "call_id": call["id"], **call["function"]}


def _reasoning_tokens(value: Any, encoding: str) -> int:
    """Tokens of reasoning that is sent back, about: nobody else can read what is encrypted."""
    if isinstance(value, str):
        return count_tokens(value, encoding)
    if isinstance(value, list):
        return sum(_reasoning_tokens(item, encoding) for item in value)
    if isinstance(value, dict):
        return sum(
            int(len(inner) / OPAQUE_CHARACTERS)
            if key in OPAQUE_KEYS and isinstance(inner, str)
            else _reasoning_tokens(inner, encoding)
            for key, inner in value.items()
            if key not in ("type", "id", "status", "format")
        )
    return 0


CACHE_MARKS = {
    "breakpoint": ("prompt_cache_breakpoint", {"mode": "explicit"}),
    "cache_control": ("cache_control", {"type": "ephemeral"}),
}


@lru_cache(maxsize=256)
def _marked_text(message: bytes, key: str, kind: str, marks: str) -> bytes:
    """The message with a mark at its end, up to which the provider shall cache."""
    stored = from_json(message)
    if not stored[key]:
        # A mark on an empty text is refused.
        return message
    name, mark = CACHE_MARKS[marks]
    return to_wire({**stored, key: [{"type": kind, "text": stored[key], name: mark}]})
