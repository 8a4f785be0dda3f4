"""`/healthz` and `/readyz` of a worker, for process supervisors."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

from engine.errors import SetupError
from engine.root import check_writable

VARIABLE = "LONGHAUL_HEALTH"
SECONDS = 3
"""Seconds for a request to arrive, and for Temporal to answer."""
ReadinessCheck = Callable[[], Awaitable[str]]


async def readiness_problem(
    worker: Worker, client: Client, folder: Path, stop: asyncio.Event
) -> str:
    """Why the worker cannot serve jobs; empty when it can."""
    if stop.is_set():
        return "draining"
    if not worker.is_running:
        return "not polling"
    try:
        await asyncio.to_thread(check_writable, folder)
        await client.service_client.check_health(timeout=timedelta(seconds=SECONDS))
    except SetupError as error:
        return str(error)
    except RPCError as error:
        return f"Temporal does not answer: {error.message}"
    return ""


@asynccontextmanager
async def serve_health(ready: ReadinessCheck) -> AsyncIterator[str | None]:
    """Serve at LONGHAUL_HEALTH (`host:port`) during the context, and yield the address.

    Without the variable nothing is served, and None is yielded. `/healthz` is 200 while the process
    is alive; `/readyz` is 200, or 503 with the reason.

    Raises:
        SetupError: the variable is not an address, or the address is in use.
    """
    address = os.environ.get(VARIABLE, "").strip()
    if not address:
        yield None
        return
    host, _, port = address.rpartition(":")
    try:
        server = await asyncio.start_server(_health_handler(ready), host.strip("[]"), int(port))
    except (OSError, ValueError, OverflowError) as error:
        raise SetupError(
            f"{VARIABLE}={address}: {error}; expected an address that is free, as 127.0.0.1:8235"
        ) from None
    async with server:
        where, number = server.sockets[0].getsockname()[:2]
        yield f"{where}:{number}"


def _health_handler(
    ready: ReadinessCheck,
) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def answer_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1].partition(b"?")[0]
            lacks = await ready() if path == b"/readyz" else ""
            status = "404 Not Found" if path not in (b"/healthz", b"/readyz") else "200 OK"
            if lacks:
                status = "503 Service Unavailable"
            body = json.dumps({"status": lacks or status[4:].lower()}).encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (TimeoutError, OSError, EOFError, LookupError, asyncio.LimitOverrunError):
            pass  # no request arrived, or the client has gone
        finally:
            writer.close()

    return answer_request
