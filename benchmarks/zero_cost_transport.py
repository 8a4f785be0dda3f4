"""A model that costs next to nothing, behind the real client.

Requests grow with the conversation, but it parses only the last reply and what follows, which are
at the end of the body.
"""

import asyncio
import hashlib
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2
from openai import AsyncOpenAI

from benchmarks.zero_cost import ZeroCost
from rehearsal import wire

LAST_REPLY = b'{"role":"assistant"'
"""Cannot occur within a message, where quotes are escaped."""
_END = 4096
EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


class Body(httpx2.AsyncByteStream):
    """A response body in one piece, as a socket gives for short responses."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class ZeroCostTransport(httpx2.AsyncBaseTransport):
    """Answers chat completions with `ZeroCost`, and measures common prefixes of prompts.

    Args:
        delay: Seconds that an answer takes.
    """

    def __init__(self, model: ZeroCost, delay: float = 0.0) -> None:
        self._model = model
        self._delay = delay
        self.prefixes = RequestPrefixes()
        self.cpu: list[float] = []
        """CPU seconds this process had used at each request."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.cpu.append(time.process_time())
        body = await request.aread()
        self.prefixes.add(body)
        events = zero_cost_answer_events(self._model, body)
        if self._delay:
            await asyncio.sleep(self._delay)
        return httpx2.Response(200, headers=EVENTS, stream=Body(events), request=request)


def zero_cost_answer_events(model: ZeroCost, body: bytes) -> bytes:
    """Return the reply to a request as stream events."""
    incoming = wire.WireRequest(
        {"messages": [], "stream": True, "stream_options": {"include_usage": True}},
        hashlib.sha1(body[-64:], usedforsecurity=False).hexdigest(),
        len(body),
    )
    return b"".join(wire.stream_wire_reply(incoming, model(zero_cost_request_tail(body))))


def zero_cost_request_tail(body: bytes) -> dict[str, Any]:
    """Parse only the last reply and what follows it."""
    start = body.rfind(LAST_REPLY)
    if start < 0:
        request: dict[str, Any] = json.loads(body)
        return request
    # Further keys may follow the messages.
    messages, _ = json.JSONDecoder().raw_decode("[" + body[start:].decode())
    # `ZeroCost` needs only the last message and the third from the end.
    return {"messages": messages, "tools": [True]}


class RequestPrefixes:
    """How many bytes of each prompt a provider's cache could have kept from the one before."""

    def __init__(self) -> None:
        self._before = b""
        self._same = 0
        self._total = 0

    def add(self, body: bytes) -> None:
        """Count a request, except for the first of a phase, which shares no prefix."""
        before, self._before = self._before, body
        if (same := common_prefix(before, body)) > len(body) // 2:
            self._same += same
            self._total += len(body)

    @property
    def share(self) -> float:
        """Fraction of the counted requests' bytes in an unchanged prefix."""
        return self._same / self._total if self._total else 0.0


def common_prefix(one: bytes, other: bytes) -> int:
    """Return the length of the common prefix of two bodies, by bisection.

    First tries a prefix without the ends, since usually only these differ: the measured steps wait
    for this.
    """
    high = min(len(one), len(other))
    low = max(0, high - _END)
    if not one.startswith(other[:low]):
        low = 0
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def zero_cost_client(model: ZeroCost, delay: float = 0.0) -> tuple[AsyncOpenAI, ZeroCostTransport]:
    """Return a real client whose endpoint is the zero-cost model in this process."""
    transport = ZeroCostTransport(model, delay)
    http = httpx2.AsyncClient(transport=transport)
    openai_client = AsyncOpenAI(
        base_url="http://benchmark/v1", api_key="none", max_retries=0, http_client=http
    )
    return openai_client, transport
