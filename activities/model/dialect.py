"""Learn which dialect of the protocol an endpoint speaks, from its refusals.

A request is first sent in the ordinary form for the provider. If a refusal names a part that not
every endpoint accepts, the request is sent again without it. If it names another API or a missing
part, the request is sent to that API or with that part.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from activities.model.endpoint_wordings import (
    AFFORDS,
    COUNTS,
    EFFORT,
    FIGURE,
    IDS,
    INCLUDE,
    ITEM_FIELD,
    KEY,
    LIMIT,
    MARKS,
    NAMED_PARTS,
    NEEDS_CHAT,
    NEEDS_REASONING,
    NEEDS_RESPONSES,
    NULL,
    OWN_ITEM,
    PARALLEL,
    REASONING,
    REPLY_LIMIT,
    STALE,
    STREAM,
    STRICT,
    TEMPERATURE,
    TURNS,
    refused_keywords,
)
from activities.model.providers import (
    Api,
    provider_address,
    provider_api,
    provider_cache_marks,
    takes_cache_key,
)
from activities.redaction.credentials import encode_without_credentials
from activities.toolkit.tool_schemas import without_keywords
from config.schema.model_settings import ModelConfig

MIN_LIMIT = 1000
"""A smaller number is no limit of replies but a status, or another number of the sentence."""

MAX_KEYWORDS = 30

NEEDED_FIELDS = frozenset(
    {*("type", "role", "content", "call_id", "name", "arguments", "output", "text", "tool_calls"),
     *("tool_call_id", "function", "encrypted_content", "refusal", "image_url")}
)  # fmt: skip
"""Fields without which an item says nothing, so that leaving them out helps nobody."""
ID_CHARACTERS = 9
"""Length of the ids that one family of servers accepts, all letters or digits."""
ASSISTANT_FILLER = {"role": "assistant", "content": "I go on."}
USER_FILLER = {"role": "user", "content": "Go on."}
"""Inserted between two messages of one role where roles must alternate."""

_NO_TEXT = b'"role":"assistant","content":""'
_CACHE_KEY = re.compile(rb',"prompt_cache_key":"[^"]*"')
_TAIL = 200
"""Bytes at the end of a request that contain its key."""


@dataclass(frozen=True)
class Dialect:
    unsupported: frozenset[str] = field(default_factory=frozenset)
    """Parts that it does not accept, or only in another form."""
    max_reply_tokens: int | None = None
    """Largest limit on reply tokens that it accepts."""
    keywords: frozenset[str] = field(default_factory=frozenset)
    """Schema keywords that it does not know."""
    item_fields: frozenset[str] = field(default_factory=frozenset)
    """Fields of what it sent itself that it does not take back."""
    is_for_now: bool = False
    """Whether the limit on reply tokens is of the account's balance, and not remembered."""
    api: Api | None = None
    """The API that it named; None until it names one."""
    needs_reasoning: bool = False
    """Whether it wants the reasoning of every reply back."""

    def describe_changes(self, other: Dialect) -> list[str]:
        parts = self.unsupported | self.keywords | self.item_fields
        left_out = parts - other.unsupported - other.keywords - other.item_fields
        changes = [f"without, or otherwise: {', '.join(sorted(left_out))}"] if left_out else []
        if self.max_reply_tokens != other.max_reply_tokens:
            changes.append(f"with at most {self.max_reply_tokens} tokens a reply")
        if self.api and self.api != other.api:
            changes.append("by the Responses API" if self.api == "responses" else "by chat")
        if self.needs_reasoning and not other.needs_reasoning:
            changes.append("with the reasoning of every reply")
        return changes

    def adapt_settings(self, model: ModelConfig) -> ModelConfig:
        update: dict[str, Any] = {}
        if model.api == "auto":
            update["api"] = self.api or provider_api(model)
        if MARKS in self.unsupported:
            update["cache_marks"] = "none"
        elif model.cache_marks == "auto":
            update["cache_marks"] = provider_cache_marks(model)
        if self.needs_reasoning:
            update["send_reasoning"] = True
        if self.unsupported & {REASONING, STALE}:
            update["send_reasoning"] = False
        if TEMPERATURE in self.unsupported:
            update["temperature"] = None
        if EFFORT in self.unsupported:
            update["reasoning_effort"] = None
        if STREAM in self.unsupported:
            update["stream"] = False
        if PARALLEL in self.unsupported:
            update["parallel_calls"] = None
        if self.max_reply_tokens is not None:
            update["max_output_tokens"] = min(self.max_reply_tokens, model.max_output_tokens)
        return model.model_copy(update=update) if update else model

    def adapt_body(self, body: bytes) -> bytes:
        """Return a request in this dialect; settings go first, where the start is replaced."""
        if COUNTS in self.unsupported:
            body = body.replace(b',"stream_options":{"include_usage":true}', b"", 1)
        if LIMIT in self.unsupported:
            body = body.replace(b'"max_completion_tokens":', b'"max_tokens":', 1)
        if NULL in self.unsupported:
            # Within strings these quotation marks would have a backslash before them.
            body = body.replace(b'"role":"assistant","content":null', _NO_TEXT)
        if INCLUDE in self.unsupported:
            body = body.replace(b',"include":["reasoning.encrypted_content"]', b"", 1)
        if STRICT in self.unsupported:
            body = body.replace(b',"strict":true', b',"strict":false')
        if KEY in self.unsupported:
            body = body[:-_TAIL] + _CACHE_KEY.sub(b"", body[-_TAIL:])
        if self.keywords or self.item_fields or self.unsupported & {TURNS, IDS}:
            request = from_json(body)
            for name in ("input", "messages"):
                if self.item_fields and name in request:
                    request[name] = _without_fields(request[name], self.item_fields)
            for tool in request.get("tools", []):
                function = tool.get("function", tool)
                function["parameters"] = without_keywords(function["parameters"], self.keywords)
            if messages := request.get("messages"):
                if TURNS in self.unsupported:
                    messages = list(_alternate_message_roles(messages))
                if IDS in self.unsupported:
                    messages = [_shorten_call_ids(message) for message in messages]
                request["messages"] = messages
            body = encode_without_credentials(request)
        return body

    def adjust_to_refusal(self, refusal: str, model: ModelConfig) -> Dialect | None:
        settled = self.adapt_settings(model)
        other = NEEDS_CHAT if settled.api == "responses" else NEEDS_RESPONSES
        if model.api == "auto" and self.api is None and other.search(refusal):
            return replace(self, api="chat" if settled.api == "responses" else "responses")
        if NEEDS_REASONING.search(refusal):
            known = self.unsupported - {REASONING, STALE}
            return (
                None
                if self.needs_reasoning
                else replace(self, needs_reasoning=True, unsupported=known)
            )
        if learned := self._without_named_field(refusal, settled):
            return learned
        # A strict schema takes fewer keywords than another, and goes first.
        is_strict = settled.api == "responses" and STRICT not in self.unsupported
        if is_strict and NAMED_PARTS[STRICT].search(refusal):
            return replace(self, unsupported=self.unsupported | {STRICT})
        keywords = refused_keywords(refusal) - self.keywords
        if keywords and len(self.keywords) < MAX_KEYWORDS:
            return replace(self, keywords=self.keywords | keywords)
        for part, named in NAMED_PARTS.items():
            if (
                part not in self.unsupported
                and named.search(refusal)
                and _sends_dialect_part(settled, part)
            ):
                if part == LIMIT and self._token_limit(refusal, model):
                    break
                return replace(self, unsupported=self.unsupported | {part})
        if affords := AFFORDS.search(refusal):
            return self._within_means(int(affords[1].replace(",", "")), model)
        most = self._token_limit(refusal, model)
        return replace(self, max_reply_tokens=most) if most else None

    def _without_named_field(self, refusal: str, settled: ModelConfig) -> Dialect | None:
        if any(part.search(refusal) for part in NAMED_PARTS.values()):
            return None
        if named := ITEM_FIELD.search(refusal):
            path = [part for part in re.split(r"[.\[\]]+", named[3]) if part and not part.isdigit()]
            if path and path[-1] not in NEEDED_FIELDS | self.item_fields:
                return replace(self, item_fields=self.item_fields | {path[-1]})
        is_own = settled.api == "responses" and settled.send_reasoning is not False
        if is_own and OWN_ITEM.search(refusal):
            return replace(self, unsupported=self.unsupported | {REASONING})
        return None

    def _within_means(self, tokens: int, model: ModelConfig) -> Dialect | None:
        if (
            self.is_for_now
            or not MIN_LIMIT <= tokens < self.adapt_settings(model).max_output_tokens
        ):
            return None
        return replace(self, max_reply_tokens=tokens, is_for_now=True)

    def _token_limit(self, refusal: str, model: ModelConfig) -> int | None:
        if self.max_reply_tokens is not None or not REPLY_LIMIT.search(refusal):
            return None
        requested = self.adapt_settings(model).max_output_tokens
        figures = [int(figure) for figure in FIGURE.findall(refusal)]
        return max((n for n in figures if MIN_LIMIT <= n < requested), default=None)


def _sends_dialect_part(model: ModelConfig, part: str) -> bool:
    if part == TEMPERATURE:
        return model.temperature is not None
    if part == EFFORT:
        return model.reasoning_effort is not None
    if part == PARALLEL:
        return model.parallel_calls is not None
    if part == MARKS:
        return model.cache_marks != "none"
    if part == KEY:
        return takes_cache_key(model)
    if part in (INCLUDE, STRICT):
        return model.api == "responses"
    if part in (REASONING, STALE):
        return model.send_reasoning is not False
    return model.stream or part not in (STREAM, COUNTS)


def _without_fields(value: Any, names: frozenset[str]) -> Any:
    """Return what is sent back without these fields at any depth, but for the texts within."""
    if isinstance(value, list):
        return [_without_fields(inner, names) for inner in value]
    if isinstance(value, dict):
        return {
            key: inner if key == "arguments" else _without_fields(inner, names)
            for key, inner in value.items()
            if key not in names
        }
    return value


def _alternate_message_roles(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return messages with alternating roles; results belong to the role of the calls."""
    before = ""
    for message in messages:
        if message["role"] == "user" and before in ("user", "tool"):
            yield ASSISTANT_FILLER
        elif message["role"] == before == "assistant":
            yield USER_FILLER
        yield message
        before = message["role"]


def _shorten_call_ids(message: dict[str, Any]) -> dict[str, Any]:
    if answered := message.get("tool_call_id"):
        return {**message, "tool_call_id": _short_call_id(answered)}
    if calls := message.get("tool_calls"):
        return {
            **message,
            "tool_calls": [{**call, "id": _short_call_id(call["id"])} for call in calls],
        }
    return message


def _short_call_id(name: str) -> str:
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:ID_CHARACTERS]


MAX_REMEMBERED = 10_000
_learned: dict[tuple[str, str], Dialect] = {}
"""Learned dialects of models, by address and name."""
_stale: set[tuple[str, str, Path]] = set()
"""Jobs, by repository, whose reasoning the model no longer recognises."""


def dialect_of(model: ModelConfig, repository: Path) -> Dialect:
    where = provider_address(model), model.name
    known = _learned.get(where) or Dialect()
    if (*where, repository) in _stale:
        return replace(known, unsupported=known.unsupported | {STALE})
    return known


def remember_dialect(model: ModelConfig, repository: Path, dialect: Dialect) -> None:
    """Remember a dialect that a model accepted; a refusal alone may name the wrong part."""
    where = provider_address(model), model.name
    if not dialect.is_for_now:
        _learned[where] = replace(dialect, unsupported=dialect.unsupported - {STALE})
    if STALE in dialect.unsupported:
        if len(_stale) >= MAX_REMEMBERED:
            _stale.clear()
        _stale.add((*where, repository))
