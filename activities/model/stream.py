"""One streamed request to the endpoint, put together into a whole reply."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import openai
from openai import AsyncOpenAI, AsyncStream

from activities.plain import plain
from config.schema import ModelConfig
from protocol.requests import Usage
from protocol.state import Data

MAX_TEXT = 50_000
"""Characters of a reply's text that are kept."""
MAX_ARGUMENTS = 2_000_000
MAX_CALLS = 32
REASONING = ("reasoning_content", "reasoning")
"""Fields in which servers return what the model thought; no part of the protocol."""
MAX_TOKENS = 10**9
"""A count above this is not believed."""
CHARACTERS_A_TOKEN = 4
"""About, where the endpoint counts nothing."""


@dataclass
class StreamedCall:
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class Streamed(Data):
    """A complete reply."""

    text: str
    calls: list[tuple[str, str]]
    finish: str
    usage: Usage
    reasoning: str = ""
    model: str = ""
    """Name of the model that gave it."""
    is_fallback: bool = False


async def stream_reply(client: AsyncOpenAI, body: bytes, model: ModelConfig) -> Streamed:
    """Send a ready body and collect the reply; a stream that was cut counts as no reply.

    The body goes past the client's own argument handling, whose cost grows with the
    conversation, and the chunks past its models, which cost as much as the rest of the call: a
    chunk is the JSON that came, checked here as far as it is used.

    Raises:
        openai.OpenAIError: what went wrong at the endpoint.
        TypeError, AttributeError: a chunk that is not the protocol's.
    """
    if not model.stream:
        answer: Any = await client.post(
            "/chat/completions",
            content=body,
            cast_to=object,
            options={"headers": {"Content-Type": "application/json"}},
        )
        return _whole(answer, len(body))
    stream = await client.post(
        "/chat/completions",
        content=body,
        cast_to=object,
        stream=True,
        stream_cls=AsyncStream[Any],
        options={"headers": {"Content-Type": "application/json"}},
    )
    gathered = _Gathered()
    loop = asyncio.get_running_loop()
    async with stream:
        if "json" in stream.response.headers.get("content-type", ""):
            # Some servers do not stream, whatever they are asked.
            return _whole(json.loads(await stream.response.aread()), len(body))
        try:
            async with asyncio.timeout(None) as silence:
                async for chunk in stream:
                    silence.reschedule(loop.time() + model.stall_seconds)
                    gathered.add(chunk)
        except TimeoutError:
            raise openai.APIConnectionError(
                message=f"the stream said nothing for {model.stall_seconds} s",
                request=stream.response.request,
            ) from None
    if not gathered.finish:
        raise openai.APIConnectionError(
            message="the stream ended before the reply was complete",
            request=stream.response.request,
        )
    return gathered.reply(len(body))


@dataclass
class _Gathered:
    """A reply as far as it has come."""

    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: dict[int, StreamedCall] = field(default_factory=dict)
    finish: str = ""
    usage: dict[str, Any] = field(default_factory=dict)

    def add(self, chunk: dict[str, Any]) -> None:
        self.usage = chunk.get("usage") or self.usage
        for choice in chunk.get("choices") or []:
            self.finish = choice.get("finish_reason") or self.finish
            self.piece(choice.get("delta") or {})

    def piece(self, delta: dict[str, Any]) -> None:
        if delta.get("content"):
            self.text.append(delta["content"])
        for name in REASONING:
            if isinstance(delta.get(name), str):
                self.reasoning.append(delta[name])
                break
        for piece in delta.get("tool_calls") or []:
            call = self.calls.setdefault(_index(piece, len(self.calls)), StreamedCall())
            function = piece.get("function") or {}
            call.name += function.get("name") or ""
            call.arguments.append(function.get("arguments") or "")

    def reply(self, sent: int) -> Streamed:
        """The whole of it, after a request of so many bytes."""
        texts = [*self.text, *(part for call in self.calls.values() for part in call.arguments)]
        return Streamed(
            text=plain("".join(self.text))[:MAX_TEXT],
            calls=[
                (plain(held.name), plain("".join(held.arguments))[:MAX_ARGUMENTS])
                for _, held in sorted(self.calls.items())
            ][:MAX_CALLS],
            finish=plain(self.finish),
            usage=_usage(self.usage, sent, sum(map(len, texts))),
            reasoning=plain("".join(self.reasoning))[:MAX_TEXT],
        )


def _whole(answer: dict[str, Any], sent: int) -> Streamed:
    """A reply that came in one piece."""
    gathered = _Gathered()
    [choice, *_] = answer["choices"]
    gathered.add({"usage": answer.get("usage"), "choices": [choice]})
    gathered.piece(choice["message"])
    gathered.finish = gathered.finish or "stop"
    return gathered.reply(sent)


def _usage(told: dict[str, Any], sent: int, received: int) -> Usage:
    """What the endpoint says was used, else an estimate: limits hold with any endpoint."""
    details = told.get("prompt_tokens_details") or {}
    return Usage(
        model_calls=1,
        prompt_tokens=_tokens(told, "prompt_tokens") or sent // CHARACTERS_A_TOKEN,
        completion_tokens=_tokens(told, "completion_tokens") or received // CHARACTERS_A_TOKEN,
        cached_tokens=_tokens(details, "cached_tokens"),
    )


def _tokens(told: dict[str, Any], name: str) -> int:
    """A count as the endpoint told it; 0 for what can be none."""
    found = told.get(name)
    return found if isinstance(found, int) and 0 <= found < MAX_TOKENS else 0


def _index(piece: dict[str, Any], held: int) -> int:
    """The place of the call a piece belongs to. Some endpoints leave it out: there, a piece with
    a name begins a call and one without goes on with the last."""
    index: int | None = piece.get("index")
    if index is not None:
        return index
    begins = (piece.get("function") or {}).get("name")
    return held if begins else max(0, held - 1)
