"""One streamed request to the endpoint, put together into a whole reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import httpx2
import openai
from anyio import EndOfStream
from openai import AsyncOpenAI, AsyncStream
from pydantic import Field
from pydantic_core import from_json

from activities.model.call_pieces import Piece, read_calls, separate_calls
from activities.model.events import Events
from activities.model.reasoning import Reasoning
from activities.model.responses import ResponseEvents, failure_of
from activities.text.plain import NAME_CHARACTERS, plain, tool_name
from config.schema.agent_sections import ModelConfig
from protocol.requests import MAX_CALLS, Usage
from protocol.state import Data

MAX_TEXT = 50_000
"""Characters of a reply's text that are kept."""
MAX_ARGUMENTS = 2_000_000
MAX_EXTRA = 100_000
MAX_MODEL = 200
UNENDED = (
    "the stream ended with neither a finish_reason nor [DONE], as one that was cut. If it always "
    "does, model.stream=false asks for replies in one piece"
)
ENDED_EARLY = "the stream ended before the reply was complete"
EMPTY_STREAM = "the stream ended without a word of a reply"
BROKEN = (httpx2.RequestError, EndOfStream)
"""What comes of a connection that broke off. The second escapes from a TLS connection."""
ODD = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""What comes of a chunk that is not the protocol's: its form is checked nowhere."""
QUOTED = 300
"""Bytes of one that people are shown."""
END_SECONDS = 0.1
"""How long a stream may take to end after its last event."""
MAX_TOKENS = 10**9
"""A count above this is not believed."""
CHARACTERS_A_TOKEN = 4
"""About, where the endpoint counts nothing."""


class CutShort(openai.APIConnectionError):
    """A reply that had begun and did not come to its end."""


class Streamed(Data):
    """A complete reply."""

    text: str
    calls: list[tuple[str, str]]
    finish: str
    usage: Usage
    extras: list[dict[str, Any] | None] = Field(default_factory=list)
    """What an endpoint put beside each call and wants back with it, as Gemini its signature of what
    was thought; empty where there is none."""
    reasoning: str = ""
    fields: dict[str, Any] = Field(default_factory=dict)
    """Reasoning that came as fields of the message, to be sent back in them."""
    items: list[dict[str, Any]] = Field(default_factory=list)
    """The output of the Responses API, to be sent back as it is; empty where it cannot be."""
    model: str = ""
    """Name of the model that gave it."""
    maker: str = ""
    """The endpoint and model that gave it, to which alone fields, items and extras go back."""
    answered_by: str = ""
    """What the endpoint calls that model; empty where it says nothing."""
    is_fallback: bool = False
    dropped: int = 0
    """Calls beyond those that are kept."""
    lacks: list[str] = Field(default_factory=list)
    """What the endpoint left out: finish_reason, usage."""


async def stream_reply(client: AsyncOpenAI, body: bytes, model: ModelConfig) -> Streamed:
    """Send a ready body and collect the reply; a stream that was cut counts as no reply.

    The body goes past the client's own argument handling, whose cost grows with the
    conversation, and the answer past its streams and models, which cost more than the rest of the
    call: a chunk is the JSON that came, checked here as far as it is used.

    Args:
        client: Of the endpoint.
        body: In the form of the API that `model.api` names.
        model: Its settings, being what the endpoint takes.

    Raises:
        openai.OpenAIError: what went wrong at the endpoint.
        ValueError: what came is not the protocol's; quotes it.
    """
    is_responses = model.api == "responses"
    response = await client.post(
        "/responses" if is_responses else "/chat/completions",
        content=body,
        cast_to=httpx2.Response,
        stream=model.stream,
        stream_cls=AsyncStream[Any],
        options={"headers": {"Content-Type": "application/json"}},
    )
    assert isinstance(response, httpx2.Response)
    try:
        async with aclosing(response):
            # Some servers do not stream, whatever they are asked.
            kind = response.headers.get("content-type", "")
            if not model.stream or "json" in kind:
                data = await response.aread()
                with _quoting(data):
                    answer = _chunk(data, response.request)
                    return (_whole_response if is_responses else _whole)(answer, body)
            gathered = await _gather(
                response, model.stall_seconds, _GatheredResponse() if is_responses else _Gathered()
            )
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=response.request) from error
    except BROKEN as error:
        raise CutShort(request=response.request) from error
    if not gathered.is_complete and kind.startswith("text/html"):
        raise ValueError("it is a web page. Is the address complete, such as with /v1?")
    if not gathered.is_complete:
        raise CutShort(message=gathered.lacking, request=response.request)
    return gathered.reply(body)


async def _gather(
    response: httpx2.Response, stall_seconds: float, gathered: _Gathered | _GatheredResponse
) -> _Gathered | _GatheredResponse:
    """What the events of a stream say."""
    events, pieces = Events(), response.aiter_bytes()
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as silence:
            async for piece in pieces:
                for data in events.feed(piece):
                    with _quoting(data):
                        gathered.add(_chunk(data, response.request))
                    silence.reschedule(
                        None if gathered.is_thinking else loop.time() + stall_seconds
                    )
                if events.over:
                    gathered.end_stream()
                if events.over or gathered.is_over:
                    break
    except TimeoutError:
        raise CutShort(
            message=f"the stream said nothing for {stall_seconds} s", request=response.request
        ) from None
    # The connection serves the next call as well if it was read to its end.
    with suppress(TimeoutError, *BROKEN):
        async with asyncio.timeout(END_SECONDS):
            async for _ in pieces:
                continue
    return gathered


@contextmanager
def _quoting(data: bytes) -> Iterator[None]:
    """Has what cannot be read be told, not what Python says of it: some endpoints put there, under
    status 200, what is wrong."""
    try:
        yield
    except ODD as error:
        raise ValueError(data[:QUOTED].decode(errors="replace") or "it is empty") from error


def _chunk(data: bytes, request: httpx2.Request) -> dict[str, Any]:
    """The JSON of an event or answer. Raises openai.APIError for one that tells of an error."""
    chunk: dict[str, Any] = json.loads(data)
    if error := chunk.get("error") or failure_of(chunk):
        told = error.get("message") if isinstance(error, dict) else error
        message = told if told and isinstance(told, str) else "An error occurred during streaming"
        raise openai.APIError(message, request, body=error)
    return chunk


@dataclass
class _Gathered:
    """A reply as far as it has come."""

    text: list[str] = field(default_factory=list)
    reasoning: Reasoning = field(default_factory=Reasoning)
    pieces: list[Piece] = field(default_factory=list)
    """Of tool calls."""
    finish: str = ""
    is_over: bool = False
    """Whether the event came that ends a stream."""
    usage: object = None
    model: object = ""
    is_thinking = False

    def end_stream(self) -> None:
        """Take the event that ends a stream."""
        self.is_over = True

    def add(self, chunk: dict[str, Any]) -> None:
        self.usage = chunk.get("usage") or self.usage
        self.model = chunk.get("model") or self.model
        for choice in chunk.get("choices") or []:
            self.finish = choice.get("finish_reason") or self.finish
            self.piece(choice.get("delta") or {})

    def piece(self, delta: dict[str, Any]) -> None:
        if content := delta.get("content") or delta.get("refusal"):
            self.text.append(content if isinstance(content, str) else _parts(content))
        self.reasoning.add(delta)
        self.pieces += map(Piece.parse, delta.get("tool_calls") or [])

    @property
    def is_complete(self) -> bool:
        """Some endpoints say nowhere why a reply ended, but that the stream has."""
        return bool(
            self.finish or (self.is_over and (self.text or self.pieces or self.reasoning.text))
        )

    @property
    def lacking(self) -> str:
        """Why it is not complete."""
        return EMPTY_STREAM if self.is_over else UNENDED

    def reply(self, body: bytes, *, separate: bool = False) -> Streamed:
        """The whole of it.

        Args:
            body: The request.
            separate: Whether each piece is a call.
        """
        if separate:
            calls = separate_calls(self.pieces)
        else:
            calls = read_calls(self.pieces, lambda: _tool_names(body))
        received = sum(map(len, self.text)) + sum(len(piece.arguments) for piece in self.pieces)
        dropped, calls = len(calls[MAX_CALLS:]), calls[:MAX_CALLS]
        extras = [_extra(call.extra) for call in calls]
        return Streamed(
            text=plain("".join(self.text))[:MAX_TEXT],
            calls=[(_called(call.name), call.arguments[:MAX_ARGUMENTS]) for call in calls],
            extras=extras if any(extras) else [],
            dropped=dropped,
            finish=plain(self.finish) or ("tool_calls" if calls else "stop"),
            lacks=[
                *([] if self.finish else ["finish_reason"]),
                *([] if _tokens(self.usage, "prompt_tokens") else ["usage"]),
            ],
            usage=_usage(self.usage, len(body), received),
            reasoning=plain(self.reasoning.text)[:MAX_TEXT],
            fields=self.reasoning.fields(),
            answered_by=plain(str(self.model))[:MAX_MODEL],
        )


@dataclass
class _GatheredResponse(ResponseEvents):
    """A reply of the Responses API as far as it has come."""

    @property
    def is_complete(self) -> bool:
        return bool(self.finish)

    @property
    def lacking(self) -> str:
        return ENDED_EARLY

    def end_stream(self) -> None:
        """Here an event of its own says how the reply ended."""

    def reply(self, body: bytes) -> Streamed:
        """The whole of it, after this request."""
        calls = self.calls
        names = [_called(name) for name, _ in calls]
        # What was changed or left out here is sent back in our form only.
        is_whole = (
            len(calls) <= MAX_CALLS
            and names == [name for name, _ in calls]
            and len(self.text) <= MAX_TEXT
        )
        received = len(self.text) + sum(len(raw) for _, raw in calls)
        return Streamed(
            text=plain(self.text)[:MAX_TEXT],
            calls=[
                (name, plain(raw)[:MAX_ARGUMENTS])
                for name, (_, raw) in zip(names, calls[:MAX_CALLS], strict=False)
            ],
            dropped=max(0, len(calls) - MAX_CALLS),
            finish=plain(self.finish),
            lacks=[] if _tokens(self.usage, "input_tokens") else ["usage"],
            usage=_usage(self.usage, len(body), received),
            reasoning=plain(self.reasoning)[:MAX_TEXT],
            items=self.returnable() if is_whole else [],
            answered_by=plain(str(self.model))[:MAX_MODEL],
        )


def _extra(extra: dict[str, Any] | None) -> dict[str, Any] | None:
    """What stood beside a call, if it is small enough to be sent back."""
    if not extra or len(written := plain(json.dumps(extra, ensure_ascii=False))) > MAX_EXTRA:
        return None
    loaded: dict[str, Any] = json.loads(written)
    return loaded


def _tool_names(body: bytes) -> frozenset[str]:
    """The names of the tools that a request offers."""
    tools = from_json(body).get("tools") or []
    return frozenset(tool["function"]["name"] for tool in tools)


def _parts(content: list[dict[str, Any]]) -> str:
    """The text of a content that came in parts, beside which some servers put what was thought."""
    return "".join(part["text"] for part in content if part.get("type") == "text")


def _called(name: str) -> str:
    """The name of a call so that it may be sent back: endpoints refuse a conversation with another,
    and what a model makes up (`functions.read_file`) stays in it."""
    return tool_name(name)[:NAME_CHARACTERS] or "unnamed"


def _whole(answer: dict[str, Any], body: bytes) -> Streamed:
    """A reply that came in one piece."""
    gathered = _Gathered()
    [choice, *_] = answer["choices"]
    gathered.add({**answer, "choices": [choice]})
    gathered.piece(choice["message"])
    return gathered.reply(body, separate=True)


def _whole_response(answer: dict[str, Any], body: bytes) -> Streamed:
    """A reply of the Responses API that came in one piece."""
    gathered = _GatheredResponse()
    gathered.end(answer)
    return gathered.reply(body)


def _usage(told: object, sent: int, received: int) -> Usage:
    """What the endpoint says was used, else an estimate: limits hold with any endpoint."""
    details = None
    if isinstance(told, dict):
        details = told.get("prompt_tokens_details") or told.get("input_tokens_details")
    return Usage(
        model_calls=1,
        prompt_tokens=_tokens(told, "prompt_tokens", "input_tokens") or sent // CHARACTERS_A_TOKEN,
        completion_tokens=_tokens(told, "completion_tokens", "output_tokens")
        or received // CHARACTERS_A_TOKEN,
        cached_tokens=_tokens(details, "cached_tokens") or _tokens(told, "cache_read_input_tokens"),
        written_tokens=_tokens(details, "cache_write_tokens", "cache_creation_tokens")
        or _tokens(told, "cache_creation_input_tokens"),
    )


def _tokens(told: object, *names: str) -> int:
    """A count as the endpoint told it, under the first of these names; 0 for what can be none."""
    for name in names:
        found = told.get(name) if isinstance(told, dict) else None
        if isinstance(found, int) and 0 < found < MAX_TOKENS:
            return found
    return 0
