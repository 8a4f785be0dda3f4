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

from activities.model.providers import (
    Api,
    provider_address,
    provider_api,
    provider_cache_marks,
    takes_cache_key,
)
from activities.redaction.credentials import encode_without_credentials
from activities.toolkit.tool_schemas import without_keywords
from config.schema.agent_sections import ModelConfig

COUNTS = "stream_options"
LIMIT = "max_completion_tokens"
TEMPERATURE = "temperature"
EFFORT = "reasoning_effort"
NULL = "null"
STREAM = "stream"
TURNS = "turns"
IDS = "ids"
KEY = "prompt_cache_key"
MARKS = "cache marks"
STALE = "stale reasoning"
REASONING = "reasoning"
INCLUDE = "include"
STRICT = "strict"
NAMED = {
    # First, because it quotes other parts: such reasoning was encrypted for another key, for
    # example.
    STALE: re.compile(
        r"invalid_encrypted_content|encrypted content .{0,300}could not be|provided without its"
        r" required|Items are not persisted|Invalid .?signature.? in .?thinking",
        re.IGNORECASE,
    ),
    COUNTS: re.compile(r"stream_options"),
    LIMIT: re.compile(r"max_completion_tokens"),
    TEMPERATURE: re.compile(r"temperature", re.IGNORECASE),
    EFFORT: re.compile(
        r"(supplied: |parameter:? ['\"`]?)reasoning[_.]?effort|, ['\"]reasoning_effort['\"]\)?\]?"
        r"|reasoning[_.]effort\S* (is|are) not supported|does not support thinking",
        re.IGNORECASE,
    ),
    REASONING: re.compile(r"reasoning_content|reasoning_details|thinking_blocks"),
    MARKS: re.compile(r"prompt_cache_breakpoint|cache_control"),
    KEY: re.compile(KEY),
    INCLUDE: re.compile(r"encrypted content is not supported|['\"`]include\b", re.IGNORECASE),
    STRICT: re.compile(r"invalid schema for function|['\"`.]strict\b", re.IGNORECASE),
    TURNS: re.compile(r"unexpected role|roles? must alternate", re.IGNORECASE),
    IDS: re.compile(r"tool call id", re.IGNORECASE),
    NULL: re.compile(r"\bcontent\b.{0,120}\b(null|none|nonetype|string)\b", re.IGNORECASE),
    # Last, because the word also occurs in errors about other parts.
    STREAM: re.compile(r"\bstream(ing)?\b", re.IGNORECASE),
}
"""Names of parts in refusals, the likelier ones first: a refusal may quote the whole request."""
NEEDS_RESPONSES = re.compile(
    r"v1/responses|responses api|not (supported in|accessible via) the \S*chat/completions",
    re.IGNORECASE,
)
NEEDS_CHAT = re.compile(
    r"v1/chat/completions|not (supported|available) (in|with|by|via) (the )?(v1/)?responses",
    re.IGNORECASE,
)
"""How a refusal of one API names the other."""
NEEDS_REASONING = re.compile(
    r"reasoning_content.{0,80}(passed back|is missing|is required|must be)"
    r"|missing .?reasoning_content",
    re.IGNORECASE,
)
TOO_MANY = re.compile(r"max_(completion_|output_|new_)?tokens|(completion|output) tokens")
FIGURE = re.compile(r"(?<![\w.-])\d+(?![\w-])")
MIN_LIMIT = 1000
"""A smaller number is no limit of replies but a status, or another number of the sentence."""

KEYWORD = re.compile(r"""Unknown name \\*["'](\S{1,40}?)\\*["'] at \\*["']tools|\.(format): only""")
"""How one family of servers names an unknown keyword of a tool's schema."""
MAX_KEYWORDS = 30

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
    """How an endpoint's requests differ from ordinary ones."""

    unsupported: frozenset[str] = field(default_factory=frozenset)
    """Parts that it does not accept, or only in another form."""
    max_reply_tokens: int | None = None
    """Largest limit on reply tokens that it accepts."""
    keywords: frozenset[str] = field(default_factory=frozenset)
    """Schema keywords that it does not know."""
    api: Api | None = None
    """The API that it named; None until it names one."""
    needs_reasoning: bool = False
    """Whether it wants the reasoning of every reply back."""

    def adapt_settings(self, model: ModelConfig) -> ModelConfig:
        """Return the model's settings as the endpoint accepts them, with no `auto` left."""
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
        if self.max_reply_tokens is not None:
            update["max_output_tokens"] = min(self.max_reply_tokens, model.max_output_tokens)
        return model.model_copy(update=update) if update else model

    def adapt_body(self, body: bytes) -> bytes:
        """Return a request in this dialect. Settings go first, so the start of the body is
        replaced.
        """
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
        if self.keywords or self.unsupported & {TURNS, IDS}:
            request = from_json(body)
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
        """Return what to try after a refusal; None if it names nothing.

        Args:
            refusal: The endpoint's words; empty if it refused something else.
            model: Its settings, before or after `adapt_settings`.
        """
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
        keywords = {name for groups in KEYWORD.findall(refusal) for name in groups if name}
        if keywords - self.keywords and len(self.keywords) < MAX_KEYWORDS:
            return replace(self, keywords=self.keywords | keywords)
        for part, named in NAMED.items():
            if (
                part not in self.unsupported
                and named.search(refusal)
                and _sends_dialect_part(settled, part)
            ):
                if part == LIMIT and self._token_limit(refusal, model):
                    break
                return replace(self, unsupported=self.unsupported | {part})
        most = self._token_limit(refusal, model)
        return replace(self, max_reply_tokens=most) if most else None

    def _token_limit(self, refusal: str, model: ModelConfig) -> int | None:
        """Return the limit that a refusal names beside a limit that is too high."""
        if self.max_reply_tokens is not None or not TOO_MANY.search(refusal):
            return None
        requested = self.adapt_settings(model).max_output_tokens
        figures = [int(figure) for figure in FIGURE.findall(refusal)]
        return max((n for n in figures if MIN_LIMIT <= n < requested), default=None)


def _sends_dialect_part(model: ModelConfig, part: str) -> bool:
    if part == TEMPERATURE:
        return model.temperature is not None
    if part == EFFORT:
        return model.reasoning_effort is not None
    if part == MARKS:
        return model.cache_marks != "none"
    if part == KEY:
        return takes_cache_key(model)
    if part in (INCLUDE, STRICT):
        return model.api == "responses"
    if part in (REASONING, STALE):
        return model.send_reasoning is not False
    return model.stream or part not in (STREAM, COUNTS)


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
    """Return the dialect known for a model and the job of that repository."""
    where = provider_address(model), model.name
    known = _learned.get(where) or Dialect()
    if (*where, repository) in _stale:
        return replace(known, unsupported=known.unsupported | {STALE})
    return known


def remember_dialect(model: ModelConfig, repository: Path, dialect: Dialect) -> None:
    """Remember a dialect that a model accepted; a refusal alone may name the wrong part."""
    where = provider_address(model), model.name
    _learned[where] = replace(dialect, unsupported=dialect.unsupported - {STALE})
    if STALE in dialect.unsupported:
        if len(_stale) >= MAX_REMEMBERED:
            _stale.clear()
        _stale.add((*where, repository))
