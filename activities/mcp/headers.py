"""Headers from a command, for servers whose tokens expire before the worker ends."""

import asyncio
import json
import logging
import os
import signal
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import AsyncGenerator
from contextlib import suppress

import httpx2

from activities.guards.hooks.processes import hook_environment
from activities.mcp.call_errors import ServerUnavailable
from activities.redaction.credentials import hide_printed_credential
from activities.redaction.secrets import redact
from config.schema.mcp_servers import Server
from protocol.short_text import one_line

REFUSED = (401, 403)
MAX_OUTPUT = 100_000
EXPECTED = 'expected a JSON object of names and values, such as {"Authorization": "Bearer …"}'

log = logging.getLogger("longhaul.mcp")


class CommandHeaders(httpx2.Auth):
    """Adds the command's headers to each request; runs it again if the server refuses access.

    A refused request has done nothing, and is sent once more.
    """

    def __init__(self, server: Server, variables: dict[str, str]) -> None:
        self._server = server
        self._variables = variables
        self._headers: dict[str, str] = {}

    async def refresh(self) -> None:
        """Run the command. Raises ServerUnavailable if it gives no headers."""
        self._headers = await _run_headers_command(self._server, self._variables)

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        request.headers.update(self._headers)
        response = yield request
        if response.status_code not in REFUSED:
            return
        try:
            await self.refresh()
        except ServerUnavailable as error:
            # Keep the server's answer.
            log.warning("no new headers for an MCP server: %s", error)
            return
        request.headers.update(self._headers)
        yield request


async def _run_headers_command(server: Server, variables: dict[str, str]) -> dict[str, str]:
    command = server.headers_command or ""
    process = await asyncio.create_subprocess_exec(
        "/bin/sh", "-c", command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE,
        env={**hook_environment((), "/"), **variables}, cwd="/", start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(server.start_seconds):
            out, err = await process.communicate()
    except TimeoutError:
        raise ServerUnavailable(
            f"headers_command did not end within {server.start_seconds} s"
        ) from None
    finally:
        # Including processes that it left running.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        stderr = one_line(redact(err.decode(errors="replace")), 300)
        raise ServerUnavailable(
            f"headers_command ended with exit code {process.returncode}: {stderr}"
        )
    return _parse_headers(out)


def _parse_headers(out: bytes) -> dict[str, str]:
    """Parse the output; errors never quote it, since it may hold a token."""
    try:
        headers = json.loads(out) if len(out) <= MAX_OUTPUT else None
    except ValueError:
        headers = None
    if not isinstance(headers, dict) or not headers:
        raise ServerUnavailable(f"headers_command gave no headers; {EXPECTED}")
    for name, value in headers.items():
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise ServerUnavailable(
                f"headers_command: {name[:100]} is no text that a header can hold"
            )
        for word in value.split():
            hide_printed_credential(word)
    return headers
