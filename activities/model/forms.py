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

from activities.job.conversation import Form, on_wire
from activities.model.providers import maker_of
from activities.text.tokens import count
from config.schema.agent_sections import ModelConfig

PLAIN = ("reasoning_content", "reasoning")
SIGNED = ("reasoning_details", "thinking_blocks")
"""Fields of a message in which endpoints return reasoning and want it back: as text, and signed or
encrypted."""
OPAQUE = frozenset({"encrypted_content", "data", "signature"})
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
        own = _of_maker(provider_data, self.maker)
        fields, extras = _fields(own, self.reasoning), own.get("extras", [])
        if not (fields or extras or self.reasoning):
            return message
        stored: dict[str, Any] = json.loads(message)
        if stored["role"] != "assistant":
            return message
        if self.reasoning:
            # An endpoint that demands it demands it of every reply, whoever made it.
            fields = fields or {PLAIN[0]: ""}
        for call, extra in zip(stored.get("tool_calls", []), extras, strict=False):
            if extra:
                call["extra_content"] = extra
        return on_wire({**stored, **fields})

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
        own = self._own(provider_data)
        if items := own.get("items"):
            return b",".join(map(on_wire, items))
        stored: dict[str, Any] = json.loads(message)
        return b",".join(map(on_wire, _items(stored, own.get("call_id"))))

    def with_mark(self, message: bytes) -> bytes:
        text = "output" if message.startswith(b'{"type":"function_call_output"') else "content"
        return _marked_text(message, text, "input_text", self.marks)

    def _own(self, provider_data: bytes) -> dict[str, Any]:
        return _of_maker(provider_data, self.maker) if self.items else {}


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
        own = _of_maker(provider_data, self.maker)
        items = [] if self.reasoning is False else own.get("items", [])
        reasoned = [one for one in items if one.get("type") == "reasoning"]
        return _tokens([*reasoned, _fields(own, self.reasoning)], encoding)


def weights_of(model: ModelConfig) -> ReasoningWeights:
    """What of the reasoning counts for a model."""
    return ReasoningWeights(maker_of(model), model.send_reasoning)


def form_of(model: ModelConfig) -> Form:
    """How messages are sent to a model, its settings being what the endpoint takes."""
    maker, marks = maker_of(model), model.cache_marks if model.cache_marks in MARK else "none"
    if model.api == "responses":
        return ResponsesForm(maker, model.send_reasoning is not False, marks)
    return ChatForm(maker, model.send_reasoning, marks)


def _of_maker(provider_data: bytes, maker: str) -> dict[str, Any]:
    if not provider_data:
        return {}
    own: dict[str, Any] = json.loads(provider_data)
    return own if own["maker"] == maker else {}


def _fields(own: dict[str, Any], reasoning: bool | None) -> dict[str, Any]:
    """The fields that go back in a message of Chat Completions."""
    fields: dict[str, Any] = {} if reasoning is False else own.get("fields", {})
    if reasoning is None:
        return {name: fields[name] for name in SIGNED if name in fields}
    return fields


def _items(message: dict[str, Any], call_id: str | None) -> Iterator[dict[str, Any]]:
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


def _tokens(value: Any, encoding: str) -> int:
    """Tokens of reasoning that is sent back, about: nobody else can read what is encrypted."""
    if isinstance(value, str):
        return count(value, encoding)
    if isinstance(value, list):
        return sum(_tokens(one, encoding) for one in value)
    if isinstance(value, dict):
        return sum(
            int(len(one) / OPAQUE_CHARACTERS)
            if key in OPAQUE and isinstance(one, str)
            else _tokens(one, encoding)
            for key, one in value.items()
            if key not in ("type", "id", "status", "format")
        )
    return 0


MARK = {
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
    name, mark = MARK[marks]
    return on_wire({**stored, key: [{"type": kind, "text": stored[key], name: mark}]})
