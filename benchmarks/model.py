"""A model that costs next to nothing, behind the real client.

What it is asked grows with the conversation, what it looks at does not: the last reply and what
came after it are at the end of the body and are read from there.
"""

from __future__ import annotations

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
"""Cannot occur within a message: there, quotes are escaped."""
_END = 4096
EVENTS = {"content-type": "text/event-stream; charset=utf-8"}


class Body(httpx2.AsyncByteStream):
    """A response body in one piece, as a socket would give a short one."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class ZeroCostTransport(httpx2.AsyncBaseTransport):
    """Answers chat completions by `ZeroCost`, and measures how the prompts share their prefixes."""

    def __init__(self, model: ZeroCost) -> None:
        self._model = model
        self.prefixes = Prefixes()
        self.cpu: list[float] = []
        """What this process had used at each request, in seconds."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.cpu.append(time.process_time())
        body = await request.aread()
        self.prefixes.add(body)
        events = answered(self._model, body)
        return httpx2.Response(200, headers=EVENTS, stream=Body(events), request=request)


def answered(model: ZeroCost, body: bytes) -> bytes:
    """The reply to a request, as the events of a stream."""
    incoming = wire.IncomingRequest(
        {"messages": [], "stream": True, "stream_options": {"include_usage": True}},
        hashlib.sha1(body[-64:], usedforsecurity=False).hexdigest(),
        len(body),
    )
    return b"".join(wire.as_events(incoming, model(tail(body))))


def tail(body: bytes) -> dict[str, Any]:
    """The request with no more of the conversation than the last reply and what follows it."""
    start = body.rfind(LAST_REPLY)
    if start < 0:
        whole: dict[str, Any] = json.loads(body)
        return whole
    messages = json.loads(b"[" + body[start:-1])
    # `ZeroCost` looks at the last message and at the third from the end.
    return {"messages": messages, "tools": [True]}


class Prefixes:
    """How much of each prompt a provider's cache could have kept from the one before, in bytes."""

    def __init__(self) -> None:
        self._before = b""
        self._same = 0
        self._total = 0

    def add(self, body: bytes) -> None:
        """Count a request, unless it is the first of a phase: nothing precedes that."""
        before, self._before = self._before, body
        if (same := common_prefix(before, body)) > len(body) // 2:
            self._same += same
            self._total += len(body)

    @property
    def share(self) -> float:
        """Of all bytes of the counted requests, those in an unchanged prefix."""
        return self._same / self._total if self._total else 0.0


def common_prefix(one: bytes, other: bytes) -> int:
    """Length of what two bodies begin with alike; by halves, since comparing is fast.

    Nearly always only their ends differ, which is tried first: the steps that are measured wait
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


def client(model: ZeroCost) -> tuple[AsyncOpenAI, ZeroCostTransport]:
    """A real client whose endpoint is the zero-cost model in this process."""
    transport = ZeroCostTransport(model)
    http = httpx2.AsyncClient(transport=transport)
    made = AsyncOpenAI(
        base_url="http://benchmark/v1", api_key="none", max_retries=0, http_client=http
    )
    return made, transport
