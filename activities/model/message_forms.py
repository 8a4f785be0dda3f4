"""The forms of a stored message for each of the two APIs.

A message is stored in the form of Chat Completions. Data that its provider wants back lies beside
it and is sent only to the endpoint and model that made it; any other gets the message without it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from pydantic_core import from_json

from activities.job.conversation import MessageEncoding, Read
from activities.job.conversation_calls import WRITTEN
from activities.model.providers import provider_name
from activities.redaction.credentials import encode_without_credentials
from activities.text.tokens import count_tokens
from config.schema.model_settings import ModelConfig

PLAIN_FIELDS = ("reasoning_content", "reasoning")
SIGNED_FIELDS = ("reasoning_details", "thinking_blocks")
"""Message fields in which endpoints return reasoning and want it back, as text, signed or
encrypted.
"""
OPAQUE_KEYS = frozenset({"encrypted_content", "data", "signature"})
"""Keys of data that only the provider can read."""
OPAQUE_CHARACTERS = 16 / 3
"""Base64 characters per token: three bytes are four characters, and a token is about four bytes."""


@dataclass(frozen=True)
class ChatMessageForm:
    maker: str
    reasoning: bool | None
    """Whether reasoning is sent back; None: only if signed or encrypted."""
    marks: str = "none"
    vision: bool = False

    @property
    def key(self) -> Hashable:
        return "chat", self.maker, self.reasoning, self.vision

    @property
    def verbatim(self) -> bool:
        return not self.reasoning

    def render(self, message: bytes, beside: bytes, read: Read | None = None) -> bytes:
        if self.vision and read and (images := _message_images(beside)):
            urls = [{"url": _message_image_url(*each, read)} for each in images]
            shown = [{"type": "image_url", "image_url": url} for url in urls]
            return _add_images_to_message(message, "text", shown)
        data = _message_provider_data(beside, self.maker)
        fields, extras = _returned_message_fields(data, self.reasoning), data.get("extras", [])
        if not (fields or extras or self.reasoning):
            return message
        stored: dict[str, Any] = json.loads(message)
        if stored["role"] != "assistant":
            return message
        if self.reasoning:
            # Some endpoints require this field in every reply, even in those of other models.
            fields = fields or {PLAIN_FIELDS[0]: ""}
        for call, extra in zip(stored.get("tool_calls", []), extras, strict=False):
            if extra:
                call["extra_content"] = extra
        return encode_without_credentials({**stored, **fields})

    def render_marked(self, message: bytes) -> bytes:
        return _mark_message_for_cache(message, "content", "text", self.marks)


@dataclass(frozen=True)
class ResponsesMessageForm:
    """The form for the Responses API: a message is one input item, a reply several."""

    maker: str
    items: bool
    """Whether the model's own items are sent back."""
    marks: str = "none"
    vision: bool = False

    @property
    def key(self) -> Hashable:
        return "responses", self.maker, self.items, self.vision

    @property
    def verbatim(self) -> bool:
        return False

    def render(self, message: bytes, beside: bytes, read: Read | None = None) -> bytes:
        if self.vision and read and (images := _message_images(beside)):
            urls = [_message_image_url(*each, read) for each in images]
            shown = [{"type": "input_image", "image_url": url, "detail": "auto"} for url in urls]
            return _add_images_to_message(message, "input_text", shown, type="message")
        data = _message_provider_data(beside, self.maker) if self.items else {}
        stored: dict[str, Any] = json.loads(message) if WRITTEN.encode() in message else {}
        if items := data.get("items"):
            shortened = iter(stored.get("tool_calls", []))
            for item in items if stored else []:
                if item.get("type") == "function_call":
                    item["arguments"] = next(shortened)["function"]["arguments"]
            return b",".join(map(encode_without_credentials, items))
        stored = stored or json.loads(message)
        return b",".join(
            map(encode_without_credentials, _message_items(stored, data.get("call_id")))
        )

    def render_marked(self, message: bytes) -> bytes:
        text = "output" if message.startswith(b'{"type":"function_call_output"') else "content"
        return _mark_message_for_cache(message, text, "input_text", self.marks)


@dataclass(frozen=True)
class MessageFormWeights:
    """Tokens of reasoning that is sent back, by configuration alone: sizes stay the same."""

    maker: str
    reasoning: bool | None
    vision: bool = False

    @property
    def key(self) -> Hashable:
        return self.maker, self.reasoning, self.vision

    @property
    def without_images(self) -> MessageFormWeights:
        return replace(self, vision=False)

    def tokens(self, provider_data: bytes, encoding: str) -> int:
        if b'"images"' in provider_data:
            shown = json.loads(provider_data).get("images", []) if self.vision else []
            return sum(image["tokens"] for image in shown)
        data = _message_provider_data(provider_data, self.maker)
        items = [] if self.reasoning is False else data.get("items", [])
        reasoned = [item for item in items if item.get("type") == "reasoning"]
        return _message_reasoning_tokens(
            [*reasoned, _returned_message_fields(data, self.reasoning)], encoding
        )


def message_form_weights(model: ModelConfig) -> MessageFormWeights:
    return MessageFormWeights(provider_name(model), model.send_reasoning, model.vision)


def message_form_of(model: ModelConfig) -> MessageEncoding:
    maker, marks = (
        provider_name(model),
        model.cache_marks if model.cache_marks in CACHE_MARKS else "none",
    )
    if model.api == "responses":
        return ResponsesMessageForm(maker, model.send_reasoning is not False, marks, model.vision)
    return ChatMessageForm(maker, model.send_reasoning, marks, model.vision)


def _message_images(beside: bytes) -> list[tuple[str, str]]:
    if b'"images"' not in beside:
        return []
    return [(image["mime"], image["blob"]) for image in json.loads(beside).get("images", [])]


def _message_image_url(mime: str, blob: str, read: Read) -> str:
    return f"data:{mime};base64,{b64encode(read(bytes.fromhex(blob))).decode()}"


def _add_images_to_message(
    message: bytes, kind: str, images: list[dict[str, Any]], **fields: str
) -> bytes:
    stored: dict[str, Any] = json.loads(message)
    parts = [*images, {"type": kind, "text": stored["content"]}]
    sent = {**fields, **stored, "content": parts}
    # Credentials were hidden when it was stored, and searching an image for them is slow.
    return json.dumps(sent, ensure_ascii=False, separators=(",", ":")).encode()


def _message_provider_data(provider_data: bytes, maker: str) -> dict[str, Any]:
    if not provider_data:
        return {}
    data: dict[str, Any] = json.loads(provider_data)
    return data if data.get("maker") == maker else {}


def _returned_message_fields(data: dict[str, Any], reasoning: bool | None) -> dict[str, Any]:
    fields: dict[str, Any] = {} if reasoning is False else data.get("fields", {})
    if reasoning is None:
        return {name: fields[name] for name in SIGNED_FIELDS if name in fields}
    return fields


def _message_items(message: dict[str, Any], call_id: str | None) -> Iterator[dict[str, Any]]:
    """Return a message as items without ids, which only the provider assigns."""
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


def _message_reasoning_tokens(value: Any, encoding: str) -> int:
    """Estimate the tokens of reasoning that is sent back; encrypted reasoning cannot be counted."""
    if isinstance(value, str):
        return count_tokens(value, encoding)
    if isinstance(value, list):
        return sum(_message_reasoning_tokens(item, encoding) for item in value)
    if isinstance(value, dict):
        return sum(
            int(len(inner) / OPAQUE_CHARACTERS)
            if key in OPAQUE_KEYS and isinstance(inner, str)
            else _message_reasoning_tokens(inner, encoding)
            for key, inner in value.items()
            if key not in ("type", "id", "status", "format")
        )
    return 0


CACHE_MARKS = {
    "breakpoint": ("prompt_cache_breakpoint", {"mode": "explicit"}),
    "cache_control": ("cache_control", {"type": "ephemeral"}),
}


@lru_cache(maxsize=256)
def _mark_message_for_cache(message: bytes, key: str, kind: str, marks: str) -> bytes:
    stored = from_json(message)
    if not stored[key]:
        # A mark on an empty text is refused.
        return message
    name, mark = CACHE_MARKS[marks]
    if isinstance(stored[key], list):
        *images, text = stored[key]
        return json.dumps(
            {**stored, key: [*images, {**text, name: mark}]},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode()
    return encode_without_credentials(
        {**stored, key: [{"type": kind, "text": stored[key], name: mark}]}
    )
