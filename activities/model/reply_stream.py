"""Send one request to the endpoint and assemble the streamed reply."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import httpx2
import openai
from anyio import EndOfStream
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from openai import AsyncOpenAI, AsyncStream
from pydantic import Field
from pydantic_core import from_json

from activities.model.call_assembly import ReadCall
from activities.model.chat_reply import ChatReply
from activities.model.prompt import read_prompt_tools
from activities.model.responses import ResponseReply
from activities.model.wire_reply import WireReply, reply_event_error, reply_failure_message
from activities.redaction.credentials import without_credentials
from activities.runtime.heartbeats import set_heartbeat_details
from activities.text.safe_text import NAME_CHARACTERS, replace_surrogates, safe_tool_name
from config.schema.model_settings import ModelConfig
from protocol.data_model import Data
from protocol.requests import MAX_CALLS
from protocol.usage import Usage

MAX_TEXT = 50_000
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
    missing_parts: list[str] = Field(default_factory=list)
    """What the endpoint left out: finish_reason, usage."""

    @property
    def dropped_usage(self) -> Usage:
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

    Raises openai.OpenAIError, ValueError.
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
    progress.note_headers(response.headers)
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
    """Quote what cannot be parsed: with status 200 some endpoints send their error there."""
    try:
        yield
    except MALFORMED_ERRORS as error:
        raise ValueError(data[:QUOTED_BYTES].decode(errors="replace") or "it is empty") from error


def _parse_stream_chunk(data: bytes, request: httpx2.Request, name: str = "") -> dict[str, Any]:
    """Return the JSON of an event or answer. Raises openai.APIError if it reports an error."""
    chunk: dict[str, Any] = json.loads(data)
    if error := reply_event_error(chunk, name):
        raise openai.APIError(reply_failure_message(error), request, body=error)
    return chunk


def _build_reply(gathered: WireReply, body: bytes, model: ModelConfig) -> StreamedReply:
    tools = read_prompt_tools(body, model)
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
    note_headers: Callable[[Mapping[str, str]], None] = lambda headers: None
    """Called with those of the answer, before its reply."""

    def unfinished_usage(self, error: BaseException, body: bytes) -> Usage | None:
        """Estimate what the endpoint counts for a reply that broke off; None if for none."""
        received = self.gathered.partial_characters if self.gathered else 0
        if not received and not _is_reply_under_way(error):
            return None
        return read_reply_usage(
            self.gathered.usage if self.gathered else None, len(body), received
        ).as_unfinished


def _is_reply_under_way(error: BaseException) -> bool:
    if isinstance(error, openai.APITimeoutError):
        return not isinstance(error.__cause__, (httpx2.ConnectTimeout, httpx2.PoolTimeout))
    return isinstance(error, (ReplyCutShort, TimeoutError, asyncio.CancelledError))


def _streamed_call_extra(extra: dict[str, Any] | None) -> dict[str, Any] | None:
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


MAX_TOKENS = 10**9
"""A larger token count is not believed."""
CHARACTERS_A_TOKEN = 4
"""Estimated characters per token, for endpoints that count nothing."""


def read_reply_usage(reported: object, sent: int, received: int) -> Usage:
    """Return the usage that the endpoint reports, else an estimate, so that limits always hold."""
    details = None
    if isinstance(reported, dict):
        details = reported.get("prompt_tokens_details") or reported.get("input_tokens_details")
    return Usage(
        model_calls=1,
        prompt_tokens=read_token_count(reported, "prompt_tokens", "input_tokens")
        or sent // CHARACTERS_A_TOKEN,
        completion_tokens=read_token_count(reported, "completion_tokens", "output_tokens")
        or received // CHARACTERS_A_TOKEN,
        cached_tokens=read_token_count(details, "cached_tokens")
        or read_token_count(reported, "cache_read_input_tokens"),
        written_tokens=read_token_count(details, "cache_write_tokens", "cache_creation_tokens")
        or read_token_count(reported, "cache_creation_input_tokens"),
    )


def read_token_count(reported: object, *names: str) -> int:
    """Return the count under the first of these names; 0 if it is no count."""
    for name in names:
        count = reported.get(name) if isinstance(reported, dict) else None
        if isinstance(count, int) and 0 < count < MAX_TOKENS:
            return count
    return 0


_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n?\s*```", re.DOTALL)
_TAGGED = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
ARGUMENTS = ("arguments", "parameters")


def read_bare_call(text: str, tools: list[dict[str, Any]]) -> tuple[str, str] | None:
    """Return name and arguments if a text is one call and nothing else; else None."""
    text = text.strip()
    for form in (_FENCED, _TAGGED):
        if match := form.fullmatch(text):
            text = match[1].strip()
    with suppress(ValueError):
        call = from_json(text, allow_inf_nan=False)
        if isinstance(call, dict) and isinstance(call.get("function"), dict):
            call = call["function"]
        if not isinstance(call, dict):
            return None
        arguments = next((call[key] for key in ARGUMENTS if key in call), None)
        functions = [tool.get("function", tool) for tool in tools]
        named = [each for each in functions if each["name"] == call.get("name")]
        if named and isinstance(arguments, dict) and _fit(arguments, named[0]["parameters"]):
            return named[0]["name"], json.dumps(arguments, ensure_ascii=False)
    return None


def _fit(arguments: dict[str, Any], schema: dict[str, Any]) -> bool:
    known = schema.get("properties") or {}
    try:
        return arguments.keys() <= known.keys() and Draft202012Validator(schema).is_valid(arguments)
    except SchemaError:
        return False


DONE = b"[DONE]"
MARK = b"\xef\xbb\xbf"
"""Byte order mark, which the standard allows at the start."""
MAX_STRAY = 2_000


class ServerEvent(NamedTuple):
    name: str
    """What its `event` line says; empty without one."""
    data: bytes


class EventParser:
    """Parses the events of one stream, which arrives in pieces of any size.

    Follows https://html.spec.whatwg.org/multipage/server-sent-events.html. Ids and retry times,
    which no endpoint uses, are ignored like comments.
    """

    def __init__(self) -> None:
        self.is_over = False
        """Whether the final event `[DONE]` has arrived."""
        self.stray = b""
        """Lines that are none of an event stream, such as a page in its place."""
        self._rest = b""
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        lines = (self._rest + piece).splitlines(keepends=True)
        # A carriage return at the end may be half of a line end.
        is_complete = not lines or lines[-1].endswith(b"\n")
        self._rest = b"" if is_complete else lines.pop()
        for line in lines:
            if (event := self._read_line(line)) is not None:
                yield event
            if self.is_over:
                return

    def end(self) -> None:
        """Handle the end of the stream: a final event need not be followed by an empty line."""
        self._read_line(self._rest)
        self._rest = b""
        self._read_line(b"")

    def _read_line(self, line: bytes) -> ServerEvent | None:
        name, colon, value = line.rstrip(b"\r\n").partition(b":")
        name = name.removeprefix(MARK)
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._name = value.strip()
        elif not name and not colon:
            event = ServerEvent(self._name.decode(errors="replace"), b"\n".join(self._data))
            self._name, self._data = b"", []
            self.is_over |= event.data.startswith(DONE)
            return event if event.data and not self.is_over else None
        elif name not in (b"", b"id", b"retry") and len(self.stray) < MAX_STRAY:
            self.stray += line
        return None
