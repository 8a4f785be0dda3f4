"""Minimal HTTP for health checks and metrics: serve a text, fetch a text."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import httpx2

from engine.setup_errors import SetupError

SECONDS = 3
"""Time limit for a request to arrive, and for a process to answer."""
Respond = Callable[[str], Awaitable[tuple[str, str, str]]]
"""Maps a path to status line, content type and body."""


@asynccontextmanager
async def serve_http(variable: str, address: str, respond: Respond) -> AsyncIterator[str]:
    """Answer requests at `host:port` during the context, and yield the address.

    Raises SetupError: the address is invalid or in use; the message names its variable.
    """
    host, _, port = address.rpartition(":")
    try:
        server = await asyncio.start_server(
            _http_connection_handler(respond), host.strip("[]"), int(port)
        )
    except (OSError, ValueError, OverflowError) as error:
        raise SetupError(
            f"{variable}={address}: {error}; expected an address that is free, as 127.0.0.1:8235"
        ) from None
    async with server:
        where, number = server.sockets[0].getsockname()[:2]
        yield f"{where}:{number}"


@asynccontextmanager
async def serve_http_text(
    variable: str, address: str, text: Callable[[], Awaitable[str]]
) -> AsyncIterator[str]:
    """Serve a text at `/metrics` in Prometheus' content type."""

    async def respond(path: str) -> tuple[str, str, str]:
        if path != "/metrics":
            return "404 Not Found", "text/plain", "not found\n"
        return "200 OK", "text/plain; version=0.0.4", await text()

    async with serve_http(variable, address, respond) as where:
        yield where


async def fetch_http_text(address: str, path: str) -> tuple[int, str]:
    """Return status and body; 0 and an empty text if nobody answers in time."""
    try:
        async with httpx2.AsyncClient(trust_env=False, timeout=SECONDS) as client:
            answer = await client.get(f"http://{address}{path}")
    except httpx2.HTTPError:
        return 0, ""
    return answer.status_code, answer.text


def _http_connection_handler(
    respond: Respond,
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def answer_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].partition(b"?")[0].decode(errors="replace")
            status, kind, text = await respond(path)
            body = text.encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (TimeoutError, OSError, EOFError, LookupError, asyncio.LimitOverrunError):
            pass  # no request arrived, or nobody waits for the answer
        finally:
            writer.close()

    return answer_request
