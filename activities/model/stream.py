"""One streamed request to the endpoint, put together into a whole reply."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import openai
from openai import AsyncOpenAI, AsyncStream

from activities.plain import plain
from protocol.requests import Usage
from protocol.state import Data

MAX_TEXT = 50_000
"""Characters of a reply's text that are kept."""
MAX_ARGUMENTS = 2_000_000
MAX_CALLS = 32
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


async def stream_reply(client: AsyncOpenAI, body: bytes) -> Streamed:
    """Send a ready body and collect the reply; a stream that was cut counts as no reply.

    The body goes past the client's own argument handling, whose cost grows with the
    conversation, and the chunks past its models, which cost as much as the rest of the call: a
    chunk is the JSON that came, checked here as far as it is used.

    Raises:
        openai.OpenAIError: what went wrong at the endpoint.
        TypeError, AttributeError: a chunk that is not the protocol's.
    """
    stream = await client.post(
        "/chat/completions",
        content=body,
        cast_to=object,
        stream=True,
        stream_cls=AsyncStream[Any],
        options={"headers": {"Content-Type": "application/json"}},
    )
    text: list[str] = []
    calls: dict[int, StreamedCall] = {}
    finish = ""
    told: dict[str, Any] = {}
    async with stream:
        async for chunk in stream:
            told = chunk.get("usage") or told
            for choice in chunk.get("choices") or []:
                finish = choice.get("finish_reason") or finish
                delta = choice.get("delta") or {}
                if delta.get("content"):
                    text.append(delta["content"])
                for piece in delta.get("tool_calls") or []:
                    call = calls.setdefault(_index(piece, len(calls)), StreamedCall())
                    function = piece.get("function") or {}
                    call.name += function.get("name") or ""
                    call.arguments.append(function.get("arguments") or "")
    if not finish:
        raise openai.APIConnectionError(
            message="the stream ended before the reply was complete",
            request=stream.response.request,
        )
    received = sum(map(len, text)) + sum(len(a) for c in calls.values() for a in c.arguments)
    return Streamed(
        text=plain("".join(text))[:MAX_TEXT],
        calls=[
            (plain(held.name), plain("".join(held.arguments))[:MAX_ARGUMENTS])
            for _, held in sorted(calls.items())
        ][:MAX_CALLS],
        finish=plain(finish),
        usage=_usage(told, len(body), received),
    )


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
