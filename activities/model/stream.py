"""One streamed request to the endpoint, put together into a whole reply."""

from __future__ import annotations

from dataclasses import dataclass, field

import openai
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDeltaToolCall

from activities.plain import plain
from protocol.requests import Usage
from protocol.state import Data

MAX_TEXT = 50_000
"""Characters of a reply's text that are kept."""
MAX_ARGUMENTS = 2_000_000
MAX_CALLS = 32


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
    conversation.

    Raises:
        openai.OpenAIError: what went wrong at the endpoint.
    """
    stream = await client.post(
        "/chat/completions",
        content=body,
        cast_to=ChatCompletionChunk,
        stream=True,
        stream_cls=AsyncStream[ChatCompletionChunk],
        options={"headers": {"Content-Type": "application/json"}},
    )
    text: list[str] = []
    calls: dict[int, StreamedCall] = {}
    finish = ""
    usage = Usage(model_calls=1)
    async with stream:
        async for chunk in stream:
            if chunk.usage:
                details = chunk.usage.prompt_tokens_details
                usage.prompt_tokens = chunk.usage.prompt_tokens or 0
                usage.completion_tokens = chunk.usage.completion_tokens or 0
                usage.cached_tokens = (details.cached_tokens if details else 0) or 0
            for choice in chunk.choices or []:
                finish = choice.finish_reason or finish
                if choice.delta is None:
                    continue
                if choice.delta.content:
                    text.append(choice.delta.content)
                for piece in choice.delta.tool_calls or []:
                    call = calls.setdefault(_index(piece, len(calls)), StreamedCall())
                    if piece.function:
                        call.name += piece.function.name or ""
                        call.arguments.append(piece.function.arguments or "")
    if not finish:
        raise openai.APIConnectionError(
            message="the stream ended before the reply was complete",
            request=stream.response.request,
        )
    return Streamed(
        text=plain("".join(text))[:MAX_TEXT],
        calls=[
            (plain(held.name), plain("".join(held.arguments))[:MAX_ARGUMENTS])
            for _, held in sorted(calls.items())
        ][:MAX_CALLS],
        finish=plain(finish),
        usage=usage,
    )


def _index(piece: ChoiceDeltaToolCall, held: int) -> int:
    """The place of the call a piece belongs to. Some endpoints leave it out: there, a piece with
    a name begins a call and one without goes on with the last."""
    # The client's type promises a number, its reading does not check.
    index: int | None = piece.index
    if index is not None:
        return index
    begins = piece.function is not None and piece.function.name
    return held if begins else max(0, held - 1)
