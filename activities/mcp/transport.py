"""Connections to a server, by a process's streams or HTTP, that record whether a call was sent."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

import anyio
import httpx2
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage

from activities.mcp.call_errors import ServerUnavailable
from activities.mcp.headers import CommandHeaders
from activities.redaction.credentials import credential_value
from config.schema.mcp_servers import WORKSPACE, Server

KEEPER = Path(__file__).with_name("process_group.py")
LAST_WORDS = 2000
"""Bytes kept of a server's standard error for messages."""
CONNECT_SECONDS = 10
UNEXPLAINED = "Server returned an error response"
"""The client's wording of an HTTP status without a protocol message."""


class TransportStream(Protocol):
    """What a client asks of a stream in either direction."""

    async def aclose(self) -> None: ...
    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None: ...


class ReadStream(TransportStream, Protocol):
    """What comes from a server."""

    async def receive(self) -> SessionMessage | Exception: ...
    def __aiter__(self) -> "ReadStream": ...
    async def __anext__(self) -> SessionMessage | Exception: ...


class WriteStream(TransportStream, Protocol):
    """What goes to a server."""

    async def send(self, item: SessionMessage, /) -> None: ...


TransportStreams = tuple[ReadStream, WriteStream]
Inner = TypeVar("Inner", bound=TransportStream)


@dataclass
class CallProgress:
    """What is known of the running call."""

    was_sent: bool = False
    """Whether the server may have received it."""
    status: int = 0
    """The HTTP status of the answer."""
    result: dict[str, Any] | None = None
    """The raw answer."""
    asked: list[str] = field(default_factory=list)
    """Questions of the server during the call, with the answers it got."""

    @property
    def http_status_line(self) -> str:
        return f"{self.status} {httpx2.codes.get_reason_phrase(self.status)}".strip()


CALL_PROGRESS: ContextVar[CallProgress | None] = ContextVar("SENDING", default=None)


class StderrTail:
    def __init__(self) -> None:
        self._tail = bytearray()

    @property
    def text(self) -> str:
        return " ".join(self._tail.decode(errors="replace").split())

    @asynccontextmanager
    async def open_pipe(self) -> AsyncIterator[int]:
        """Yield a descriptor for the process to write to; it is closed afterwards."""
        loop = asyncio.get_running_loop()
        ours, theirs = os.pipe()
        os.set_blocking(ours, False)

        def read_pipe() -> None:
            try:
                piece = os.read(ours, 65_536)
            except BlockingIOError:
                return
            self._tail = (self._tail + piece)[-LAST_WORDS:]
            if not piece:
                loop.remove_reader(ours)

        loop.add_reader(ours, read_pipe)
        try:
            yield theirs
        finally:
            read_pipe()
            loop.remove_reader(ours)
            os.close(ours)
            os.close(theirs)


class ForwardingTransportStream(Generic[Inner]):
    """A stream that wraps another one, including its context manager."""

    def __init__(self, inner: Inner) -> None:
        self._inner: Inner = inner

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None:
        return await self._inner.__aexit__(exc_type, exc_val, exc_tb)


class _WatchedTransportStream(ForwardingTransportStream[WriteStream]):
    """A stream to the server that records when a call's message is taken from it."""

    async def send(self, item: SessionMessage, /) -> None:
        sending = CALL_PROGRESS.get()
        try:
            await self._inner.send(item)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise
        except BaseException:
            if sending:
                sending.was_sent = True
            raise
        if sending:
            sending.was_sent = True


@asynccontextmanager
async def open_process_transport(
    server: Server, folder: Path | None, words: StderrTail
) -> AsyncIterator[TransportStreams]:
    """Run the server's own process, which ends with this context and with the worker.

    Args:
        folder: The private folder of a server that works on files.
        words: Receives its standard error.

    Raises:
        ServerUnavailable: a variable of the worker is not set.
    """
    command = [part.replace(WORKSPACE, str(folder)) for part in server.command]
    async with words.open_pipe() as stderr:
        parameters = StdioServerParameters(
            command=sys.executable,
            args=["-I", "-S", str(KEEPER), str(os.getpid()), *command],
            env=resolve_transport_variables(server.env.items()),
            cwd=folder,
            # Bytes that are not UTF-8 make a line that is no message, and do not end the
            # connection.
            encoding_error_handler="replace",
        )
        with os.fdopen(stderr, "w", closefd=False) as errlog:
            async with stdio_client(parameters, errlog) as (read, write):
                yield read, _WatchedTransportStream(write)


class _WatchedTransport(httpx2.AsyncHTTPTransport):
    """Records whether a request may have reached the server, and the status of its answer."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        # A request for the rest of an answer follows the call, so the call was sent.
        sending = (CALL_PROGRESS.get() if request.method == "POST" else None) or CallProgress()
        sending.was_sent, sending.status = True, 0
        try:
            response = await super().handle_async_request(request)
        except (httpx2.ConnectError, httpx2.ConnectTimeout):
            sending.was_sent = False
            raise
        sending.status = response.status_code
        return response


@asynccontextmanager
async def open_http_transport(server: Server) -> AsyncIterator[TransportStreams]:
    """Connect by streamable HTTP.

    Raises:
        ServerUnavailable: a variable of the worker is not set, or the command gives no headers.
    """
    assert server.url
    headers: dict[str, Any] = resolve_transport_variables(server.headers.items())
    timeout = httpx2.Timeout(CONNECT_SECONDS, read=server.call_seconds + 5)
    auth = None
    if server.headers_command:
        auth = CommandHeaders(server, resolve_transport_variables(server.env.items()))
        await auth.refresh()
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=timeout, transport=_WatchedTransport(), auth=auth
        ) as client,
        streamable_http_client(server.url, http_client=client) as streams,
    ):
        yield streams


def resolve_transport_variables(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the values of the worker's variables by name.

    Raises:
        ServerUnavailable: one is not set.
    """
    values = {}
    for name, variable in pairs:
        value = credential_value(variable)
        if value is None:
            raise ServerUnavailable(
                f"the worker's variable {variable} is not set; set it and restart the worker"
            )
        values[name] = value
    return values
