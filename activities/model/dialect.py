"""Which dialect of the protocol an endpoint speaks: learned from what it refuses.

A request goes out in the ordinary form first. Where a refusal names a part of it that not every
endpoint takes, it goes out again without that part.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_core import from_json

from activities.job.conversation import on_wire
from activities.toolkit.schemas import without_keywords
from config.sections import ModelConfig

COUNTS = "stream_options"
LIMIT = "max_completion_tokens"
TEMPERATURE = "temperature"
EFFORT = "reasoning_effort"
NULL = "null"
STREAM = "stream"
TURNS = "turns"
IDS = "ids"
EXTRAS = "extra_content"
NAMED = {
    COUNTS: re.compile(r"stream_options"),
    LIMIT: re.compile(r"max_completion_tokens"),
    TEMPERATURE: re.compile(r"temperature", re.IGNORECASE),
    EFFORT: re.compile(
        r"(supplied: |parameter:? ['\"`]?)reasoning_?effort|, ['\"]reasoning_effort['\"]\)?\]?"
        r"|reasoning_effort\S* is not supported|does not support thinking",
        re.IGNORECASE,
    ),
    TURNS: re.compile(r"unexpected role|roles? must alternate", re.IGNORECASE),
    IDS: re.compile(r"tool call id", re.IGNORECASE),
    EXTRAS: re.compile(r"extra_content"),
    NULL: re.compile(r"\bcontent\b.{0,120}\b(null|none|nonetype|string)\b", re.IGNORECASE),
    # Last: the word stands in errors about others.
    STREAM: re.compile(r"\bstream(ing)?\b", re.IGNORECASE),
}
"""By what a refusal names a part, the likelier ones first: a request may be quoted as a whole."""
TOO_MANY = re.compile(r"max_(completion_|output_|new_)?tokens|(completion|output) tokens")
FIGURE = re.compile(r"(?<![\w.-])\d+(?![\w-])")
LEAST = 1000
"""A figure below this is no limit of replies but a status, or another of the same sentence."""

KEYWORD = re.compile(r"""Unknown name \\*["'](\S{1,40}?)\\*["'] at \\*["']tools|\.(format): only""")
"""How one family of servers names a keyword of a tool's schema that they do not know."""
MOST_KEYWORDS = 30

ID_CHARACTERS = 9
"""Of the ids that one family of servers takes, all letters or figures."""
HEARD = {"role": "assistant", "content": "I go on."}
ON = {"role": "user", "content": "Go on."}
"""What stands between two messages of one side where turns must alternate."""

_NO_TEXT = b'"role":"assistant","content":""'


@dataclass(frozen=True)
class Dialect:
    """How an endpoint's requests differ from the ordinary ones."""

    without: frozenset[str] = field(default_factory=frozenset)
    """Parts it takes not, or in another form."""
    most: int | None = None
    """Most tokens of a reply that it takes as a limit."""
    keywords: frozenset[str] = field(default_factory=frozenset)
    """Of schemas, those that it does not know."""

    def settings(self, model: ModelConfig) -> ModelConfig:
        """The model's settings, as far as it takes them."""
        update: dict[str, Any] = {}
        if TEMPERATURE in self.without:
            update["temperature"] = None
        if EFFORT in self.without:
            update["reasoning_effort"] = None
        if STREAM in self.without:
            update["stream"] = False
        if self.most is not None:
            update["max_output_tokens"] = min(self.most, model.max_output_tokens)
        return model.model_copy(update=update) if update else model

    def worded(self, body: bytes) -> bytes:
        """A request in this dialect. Settings stand in front, so the first place is theirs."""
        if COUNTS in self.without:
            body = body.replace(b',"stream_options":{"include_usage":true}', b"", 1)
        if LIMIT in self.without:
            body = body.replace(b'"max_completion_tokens":', b'"max_tokens":', 1)
        if NULL in self.without:
            # Within texts, the quotation marks of these would have a backslash before them.
            body = body.replace(b'"role":"assistant","content":null', _NO_TEXT)
        if self.keywords or self.without & {TURNS, IDS, EXTRAS}:
            request = from_json(body)
            messages = request["messages"]
            for tool in request.get("tools", []):
                function = tool["function"]
                function["parameters"] = without_keywords(function["parameters"], self.keywords)
            if TURNS in self.without:
                messages = list(_alternating(messages))
            if IDS in self.without:
                messages = [_with_short_ids(message) for message in messages]
            if EXTRAS in self.without:
                messages = [_without_extras(message) for message in messages]
            body = on_wire({**request, "messages": messages})
        return body

    def after(self, refusal: str, model: ModelConfig) -> Dialect | None:
        """What to try next, after that refusal; None where it names nothing."""
        keywords = {name for found in KEYWORD.findall(refusal) for name in found if name}
        if keywords - self.keywords and len(self.keywords) < MOST_KEYWORDS:
            return replace(self, keywords=self.keywords | keywords)
        for part, named in NAMED.items():
            if part not in self.without and named.search(refusal) and _sends(model, part):
                if part == LIMIT and self._limit(refusal, model):
                    break
                return replace(self, without=self.without | {part})
        most = self._limit(refusal, model)
        return replace(self, most=most) if most else None

    def _limit(self, refusal: str, model: ModelConfig) -> int | None:
        """The limit a refusal names beside one that is too high."""
        if self.most is not None or not TOO_MANY.search(refusal):
            return None
        asked = self.settings(model).max_output_tokens
        figures = [int(one) for one in FIGURE.findall(refusal)]
        return max((n for n in figures if LEAST <= n < asked), default=None)


def _sends(model: ModelConfig, part: str) -> bool:
    if part == TEMPERATURE:
        return model.temperature is not None
    if part == EFFORT:
        return model.reasoning_effort is not None
    return model.stream or part not in (STREAM, COUNTS)


def _alternating(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Messages between which the side changes; results belong to the side of the calls."""
    before = ""
    for message in messages:
        if message["role"] == "user" and before in ("user", "tool"):
            yield HEARD
        elif message["role"] == before == "assistant":
            yield ON
        yield message
        before = message["role"]


def _with_short_ids(message: dict[str, Any]) -> dict[str, Any]:
    if answered := message.get("tool_call_id"):
        return {**message, "tool_call_id": _short(answered)}
    if calls := message.get("tool_calls"):
        return {**message, "tool_calls": [{**call, "id": _short(call["id"])} for call in calls]}
    return message


def _without_extras(message: dict[str, Any]) -> dict[str, Any]:
    """A message without what another endpoint put beside its calls, as a fallback gets it."""
    if calls := message.get("tool_calls"):
        kept = [{k: v for k, v in call.items() if k != EXTRAS} for call in calls]
        return {**message, "tool_calls": kept}
    return message


def _short(name: str) -> str:
    return hashlib.sha1(name.encode(), usedforsecurity=False).hexdigest()[:ID_CHARACTERS]
