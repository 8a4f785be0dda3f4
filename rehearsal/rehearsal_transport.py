"""The rehearsal model inside the process, behind the real client: an HTTP transport.

client = AsyncOpenAI(
    base_url="http://rehearsal/v1",
    api_key="rehearsal",
    http_client=httpx2.AsyncClient(transport=RehearsalTransport(rehearse)),
)
"""

import asyncio
from collections.abc import AsyncIterator

import httpx2

from rehearsal import wire

JSON = {"content-type": "application/json"}
EVENTS = {"content-type": "text/event-stream; charset=utf-8"}
MODELS = b'{"object":"list","data":[{"id":"rehearsal","object":"model","created":0,"owned_by":""}]}'


class RehearsalTransport(httpx2.AsyncBaseTransport):
    """Answers `POST …/chat/completions` and `GET …/models` from a function of the request.

    Args:
        model: Answers the requests; called on the event loop, so it must be quick.
        delay: Seconds to wait before each answer.
    """

    def __init__(self, model: wire.Model, *, delay: float = 0.0) -> None:
        self.model = model
        self.delay = delay

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        path = request.url.path
        if path.endswith("/models"):
            return httpx2.Response(200, headers=JSON, content=MODELS)
        if not path.endswith("/chat/completions"):
            return _rehearsal_failure_response(wire.Failure(404, f"There is nothing at {path}."))
        incoming = wire.parse_wire_request(await request.aread())
        if isinstance(incoming, wire.Failure):
            return _rehearsal_failure_response(incoming)
        answer = wire.answer_wire_request(self.model, incoming.request)
        if self.delay:
            await asyncio.sleep(self.delay)
        if isinstance(answer, wire.Failure):
            return _rehearsal_failure_response(answer)
        headers = EVENTS if incoming.streams else JSON
        if isinstance(answer, wire.Reply):
            # One piece of content: the client's own decoder splits it, as it would a socket read.
            return httpx2.Response(
                200, headers=headers, content=wire.wire_response_body(incoming, answer)
            )
        return httpx2.Response(
            200, headers=headers, stream=_BrokenRehearsalStream(request, incoming, answer)
        )


class _BrokenRehearsalStream(httpx2.AsyncByteStream):
    """A body that stalls or breaks off."""

    def __init__(
        self,
        request: httpx2.Request,
        incoming: wire.WireRequest,
        answer: wire.Hang | wire.Cut | wire.Stall,
    ) -> None:
        self._request = request
        self._incoming = incoming
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if isinstance(self._answer, wire.Hang):
            await self._wait_silently(None)
            return
        content = wire.wire_response_body(self._incoming, self._answer.reply)
        middle = len(content) // 2
        yield content[:middle]
        if isinstance(self._answer, wire.Cut):
            raise httpx2.RemoteProtocolError(
                "peer closed connection without sending complete message body",
                request=self._request,
            )
        await self._wait_silently(self._answer.seconds)
        yield content[middle:]

    async def _wait_silently(self, seconds: float | None) -> None:
        """Wait as a socket would: at most as long as the client's read time-out."""
        patience = self._request.extensions.get("timeout", {}).get("read")
        if seconds is not None and (patience is None or seconds < patience):
            await asyncio.sleep(seconds)
        elif patience is None:
            await asyncio.Event().wait()
        else:
            await asyncio.sleep(patience)
            raise httpx2.ReadTimeout("the rehearsal model is silent", request=self._request)


def _rehearsal_failure_response(failure: wire.Failure) -> httpx2.Response:
    return httpx2.Response(failure.status, headers=JSON | failure.headers, content=failure.body)
