"""Send one request to the endpoint and assemble the streamed reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
from anyio import EndOfStream
from openai import AsyncOpenAI, AsyncStream
from pydantic import Field
from pydantic_core import from_json

from activities.model.bare_calls import read_bare_call
from activities.model.call_assembly import ReadCall
from activities.model.chat_reply import ChatReply
from activities.model.event_stream import EventParser
from activities.model.reply_usage import read_reply_usage, read_token_count
from activities.model.responses import ResponseReply
from activities.model.wire_reply import WireReply, failure_message, reported_failure
from activities.redaction.credentials import without_credentials
from activities.runtime.heartbeats import set_heartbeat_details
from activities.text.safe_text import NAME_CHARACTERS, replace_surrogates, safe_tool_name
from config.schema.agent_sections import ModelConfig
from protocol.data_model import Data
from protocol.requests import MAX_CALLS
from protocol.usage import Usage

MAX_TEXT = 50_000
"""Most characters kept of a reply's text."""
MAX_ARGUMENTS = 2_000_000
MAX_EXTRA = 100_000
MAX_MODEL = 200
CONNECTION_ERRORS = (httpx2.RequestError, EndOfStream)
"""Errors of a broken connection. The second one escapes from a TLS connection."""
MALFORMED_ERRORS = (ValueError, TypeError, AttributeError, LookupError, RecursionError)
"""Errors of a chunk that violates the protocol; its form is checked nowhere else."""
QUOTED_BYTES = 300
"""Bytes of such a chunk shown to people."""
RECEIVING = "receives a reply"
"""Detail of the heartbeats meanwhile: such a call is not given up (`watch_retries`)."""
END_SECONDS = 0.1
"""Seconds a stream may take to end after its last event."""


class ReplyCutShort(openai.APIConnectionError):
    """A reply began and did not end."""


class StreamStalled(ReplyCutShort):
    """A reply began and fell silent."""


class StreamedReply(Data):
    """A complete reply."""

    text: str
    calls: list[tuple[str, str]]
    finish: str
    usage: Usage
    is_refusal: bool = False
    """Whether the model marked its text as a refusal."""
    extras: list[dict[str, Any] | None] = Field(default_factory=list)
    """Data that an endpoint put beside each call and wants back, such as Gemini's thought
    signature.
    """
    reasoning: str = ""
    fields: dict[str, Any] = Field(default_factory=dict)
    """Reasoning fields of the message, to be sent back."""
    items: list[dict[str, Any]] = Field(default_factory=list)
    """Output of the Responses API to be sent back unchanged; empty if it cannot be."""
    model: str = ""
    """Name of the model asked."""
    maker: str = ""
    """Endpoint and model of the reply, to which alone fields, items and extras go back."""
    unfinished: dict[str, Usage] = Field(default_factory=dict)
    """What attempts whose reply broke off have used before, by the name of the model."""
    answered_by: str = ""
    """The endpoint's name of the model; empty if it gives none."""
    is_fallback: bool = False
    received: int = 0
    """When the worker had received it, in epoch seconds; 0 if unknown."""
    dropped_calls: int = 0
    """Number of calls beyond those that are kept."""
    missing_parts: list[str] = Field(default_factory=list)
    """What the endpoint left out: finish_reason, usage."""

    @property
    def dropped_usage(self) -> Usage:
        """What counts of it and of the attempts before it if nobody uses it."""
        total = self.usage.as_unfinished
        for used in self.unfinished.values():
            total.add(used)
        return total


async def stream_reply(
    client: AsyncOpenAI, body: bytes, model: ModelConfig, progress: ReplyProgress
) -> StreamedReply:
    """Send a ready body and collect the reply; a stream that was cut counts as no reply.

    The body bypasses the client's argument handling, whose cost grows with the conversation, and
    the answer its streams and models, which cost more than the rest of the call. A chunk's JSON is
    checked here as far as it is used.

    Args:
        client: The endpoint's client.
        body: The request in the form of the API that `model.api` names.
        model: Its settings, as the endpoint accepts them.
        progress: Updated as the reply comes.

    Raises:
        openai.OpenAIError: an error of the endpoint.
        ValueError: the answer violates the protocol; the message quotes it.
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
    gathered: WireReply = ResponseReply() if is_responses else ChatReply()
    events, kind = EventParser(), response.headers.get("content-type", "")
    try:
        async with aclosing(response):
            # Some servers never stream, and others always do.
            if "json" in kind or not (model.stream or "event-stream" in kind):
                data = await response.aread()
                with _quote_malformed_stream(data):
                    gathered.add_whole(_parse_stream_chunk(data, response.request))
                    return _build_reply(gathered, body, model)
            progress.gathered = gathered
            await _gather_reply_stream(response, model.stall_seconds, events, gathered)
    except httpx2.TimeoutException as error:
        raise openai.APITimeoutError(request=response.request) from error
    except CONNECTION_ERRORS as error:
        raise ReplyCutShort(request=response.request) from error
    if not gathered.is_complete:
        _raise_for_page(response, events, kind)
        raise ReplyCutShort(message=gathered.cut_message, request=response.request)
    return _build_reply(gathered, body, model)


def _raise_for_page(response: httpx2.Response, events: EventParser, kind: str) -> None:
    """Tell what came instead of a stream: a page, or an error without its status."""
    if kind.startswith("text/html"):
        where = without_credentials(str(response.request.url))
        raise ValueError(
            f"{where} is a web page. Is the address complete, such as with /v1, or does a proxy "
            "ask people to sign in?"
        )
    if events.stray:
        with _quote_malformed_stream(events.stray):
            _parse_stream_chunk(events.stray, response.request)


async def _gather_reply_stream(
    response: httpx2.Response, stall_seconds: float, events: EventParser, gathered: WireReply
) -> None:
    """Read the events of the stream."""
    pieces, loop = response.aiter_bytes(), asyncio.get_running_loop()
    try:
        async with asyncio.timeout(None) as silence:
            async for piece in pieces:
                for event in events.feed(piece):
                    set_heartbeat_details(RECEIVING)
                    with _quote_malformed_stream(event.data):
                        chunk = _parse_stream_chunk(event.data, response.request, event.name)
                        gathered.add(chunk, event.name)
                    silence.reschedule(
                        None if gathered.is_thinking else loop.time() + stall_seconds
                    )
                if events.is_over or gathered.is_over:
                    break
            else:
                events.end()
                gathered.close()
    except TimeoutError:
        raise StreamStalled(
            message=f"the stream said nothing for {stall_seconds} s", request=response.request
        ) from None
    finally:
        set_heartbeat_details()
    if events.is_over:
        gathered.end_stream()
    # A connection that was read to its end serves the next call as well.
    with suppress(TimeoutError, *CONNECTION_ERRORS):
        async with asyncio.timeout(END_SECONDS):
            async for _ in pieces:
                continue


@contextmanager
def _quote_malformed_stream(data: bytes) -> Iterator[None]:
    """Quote what cannot be parsed instead of Python's error.

    With status 200 some endpoints send their error there.
    """
    try:
        yield
    except MALFORMED_ERRORS as error:
        raise ValueError(data[:QUOTED_BYTES].decode(errors="replace") or "it is empty") from error


def _parse_stream_chunk(data: bytes, request: httpx2.Request, name: str = "") -> dict[str, Any]:
    """Return the JSON of an event or answer. Raises openai.APIError if it reports an error."""
    chunk: dict[str, Any] = json.loads(data)
    if error := reported_failure(chunk, name):
        raise openai.APIError(failure_message(error), request, body=error)
    return chunk


def _build_reply(gathered: WireReply, body: bytes, model: ModelConfig) -> StreamedReply:
    """Return the complete reply to this request."""
    tools = from_json(body).get("tools") or []
    offered = frozenset(tool.get("function", tool)["name"] for tool in tools)
    calls, text = gathered.read_calls(offered), gathered.text
    if model.bare_calls and not calls and (bare := read_bare_call(text, tools)):
        calls, text = [ReadCall(*bare)], ""
    names = [_streamed_call_name(call.name) for call in calls[:MAX_CALLS]]
    # A reply that was changed or cut here is sent back only in our form.
    is_whole = names == [call.name for call in calls] and len(text) <= MAX_TEXT
    extras = [_streamed_call_extra(call.extra) for call in calls[:MAX_CALLS]]
    received = len(text) + sum(len(call.arguments) for call in calls)
    return StreamedReply(
        text=replace_surrogates(text)[:MAX_TEXT],
        calls=[
            (name, replace_surrogates(call.arguments)[:MAX_ARGUMENTS])
            for name, call in zip(names, calls, strict=False)
        ],
        extras=extras if any(extras) else [],
        dropped_calls=len(calls[MAX_CALLS:]),
        finish=replace_surrogates(gathered.finish) or ("tool_calls" if calls else "stop"),
        is_refusal=gathered.is_refusal,
        missing_parts=[
            *([] if gathered.finish else ["finish_reason"]),
            *([] if read_token_count(gathered.usage, gathered.prompt_count) else ["usage"]),
        ],
        usage=read_reply_usage(gathered.usage, len(body), received),
        reasoning=replace_surrogates(gathered.reasoning_text)[:MAX_TEXT],
        fields=gathered.fields(),
        items=gathered.returnable_items() if is_whole else [],
        answered_by=replace_surrogates(str(gathered.model))[:MAX_MODEL],
    )


@dataclass
class ReplyProgress:
    """How far a reply has come, to count what one that breaks off has used."""

    gathered: WireReply | None = None

    def unfinished_usage(self, error: BaseException, body: bytes) -> Usage | None:
        """Return an estimate of what the endpoint counts for this reply; None if for none.

        Endpoints report tokens at the end. An error in place of a reply is not charged for.

        Args:
            error: Why there is no reply.
            body: The request.
        """
        received = self.gathered.partial_characters if self.gathered else 0
        if not received and not _is_reply_under_way(error):
            return None
        return read_reply_usage(
            self.gathered.usage if self.gathered else None, len(body), received
        ).as_unfinished


def _is_reply_under_way(error: BaseException) -> bool:
    """Return whether the endpoint had taken the request when this came."""
    if isinstance(error, openai.APITimeoutError):
        return not isinstance(error.__cause__, (httpx2.ConnectTimeout, httpx2.PoolTimeout))
    return isinstance(error, (ReplyCutShort, TimeoutError, asyncio.CancelledError))


def _streamed_call_extra(extra: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the data beside a call, if small enough to be sent back."""
    if (
        not extra
        or len(written := replace_surrogates(json.dumps(extra, ensure_ascii=False))) > MAX_EXTRA
    ):
        return None
    loaded: dict[str, Any] = json.loads(written)
    return loaded


def _streamed_call_name(name: str) -> str:
    """Return a call's name in a form that endpoints accept back.

    Endpoints refuse a conversation with other names, and a name that the model makes up
    (`functions.read_file`) stays in it.
    """
    return safe_tool_name(name)[:NAME_CHARACTERS] or "unnamed"
