"""The worker's MCP servers: started at first use, shared by its jobs, ended with it.

They run on an event loop in a thread of its own, since the client is asynchronous and tools run in
threads. There is one set per process, so jobs that name the same server share its process.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as NotYet
from functools import cache, wraps
from pathlib import Path
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from mcp import MCPError
from mcp.types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    REQUEST_TIMEOUT,
    CallToolResult,
    InputResponses,
    Result,
    TextContent,
    Tool,
)

from activities.mcp.call_errors import ServerCallFailed, ServerCallInterrupted, ServerUnavailable
from activities.mcp.raw_answers import salvage_raw_answer
from activities.mcp.server_connection import (
    Called,
    ServerConnection,
    Turn,
    describe_mcp_connection_error,
)
from activities.mcp.tasks import TaskState
from activities.mcp.transport import UNEXPLAINED, CallProgress
from config.schema.mcp_servers import Server

TICK = 0.2
"""Seconds after which, at the latest, an exception raised in a waiting thread ends its call."""
TIMEOUT_MESSAGE = "Request 'tools/call' timed out"
LOST_MESSAGES = ("Connection closed", "SSE stream ")
"""Beginnings of the client's messages on a lost call; servers also use its codes for their own
errors.
"""
BEGUN = Turn()
P = ParamSpec("P")
R = TypeVar("R")


class ListedTools(NamedTuple):
    tools: list[Tool]
    left_out: dict[str, str]
    """Tools that do not fit the protocol, with the reason."""


def _blocking(
    method: Callable[Concatenate["Servers", P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate["Servers", P], R]:
    """Make a method wait in the calling thread for its work on the servers' event loop."""

    @wraps(method)
    def wait_for_method(servers: "Servers", /, *args: P.args, **kwargs: P.kwargs) -> R:
        return servers.wait_for(method(servers, *args, **kwargs))

    return wait_for_method


class Servers:
    """Connections by their settings."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._connections: dict[str, ServerConnection] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        # The end of this thread ends the processes it started (`activities.mcp.process_group`).
        self._thread = threading.Thread(target=self._loop.run_forever, name="mcp", daemon=True)
        self._thread.start()

    @_blocking
    async def list_tools(
        self, name: str, server: Server, folder: Path | None = None
    ) -> ListedTools:
        """Return a server's declared tools. Raises ServerUnavailable."""
        connection = await self._open_connection(name, server, folder)
        try:
            return ListedTools(await connection.list_tools(), dict(connection.left_out))
        except ServerUnavailable:
            await self._drop_connection(connection)
            raise
        finally:
            if folder:
                await connection.close()

    @_blocking
    async def call_tool(
        self,
        name: str,
        server: Server,
        tool: str,
        arguments: dict[str, Any],
        *,
        key: str,
        repeatable: bool,
        turn: Turn = BEGUN,
        folder: Path | None = None,
    ) -> Called:
        """Call a tool.

        Args:
            turn: State of a call that continues.
            key: Idempotency key, shared by retries and sent to the server.
            repeatable: Whether an interrupted call may be sent once more.
            folder: Private folder of a server on files, which has a process for this call alone.

        Raises:
            ServerUnavailable: nothing was done.
            ServerCallFailed: the server reported an error.
            ServerCallInterrupted: it may have been done.
        """
        why = ""
        for is_retry in (False, True):
            sending = CallProgress()
            connection = await self._open_connection(name, server, folder)
            try:
                answer = await connection.call_tool(tool, arguments, key, sending, turn)
                return _with_server_questions(answer, name, sending)
            except ConnectionError:
                pass
            except Exception as error:
                # A server may be lost while its schema is listed, after it has answered the call.
                if (odd := salvage_raw_answer(sending.result, error)) is not None:
                    return odd
                if isinstance(error, MCPError):
                    if error.code == HEADER_MISMATCH and not is_retry:
                        # This reads the tool's schema again, and does nothing else.
                        await connection.list_tools()
                        continue
                    if _is_timeout(error):
                        await self._drop_if_silent(connection)
                    if failure := _call_failure(error, name, server, sending):
                        raise failure from error
                else:
                    kind = ServerCallFailed if repeatable else ServerCallInterrupted
                    what = describe_mcp_connection_error(error)
                    raise kind(f"{name} answered what is no result: {what}") from error
            finally:
                if folder:
                    await connection.close()
            await self._drop_connection(connection)
            why = connection.last_words
            if sending.was_sent and (is_retry or not repeatable):
                raise ServerCallInterrupted(f"{name} ended during the call{why}")
        raise ServerUnavailable(
            f"The MCP server {name} ends as soon as it is called{why}. Check it."
        )

    @_blocking
    async def ask_about_task(
        self,
        name: str,
        server: Server,
        method: str,
        task: str,
        *,
        responses: InputResponses | None = None,
    ) -> TaskState | Result:
        """Get, update or cancel a task of a server; each may be repeated.

        Raises:
            ServerUnavailable: it does not answer.
            ServerCallFailed: it does not know the task.
        """
        why = ""
        for _ in range(2):
            connection = await self._open_connection(name, server, None)
            try:
                return await connection.ask_about_task(method, task, responses)
            except MCPError as error:
                if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
                    raise ServerCallFailed(error.message, error.code) from error
                why = describe_mcp_connection_error(error)
            except Exception as error:
                why = describe_mcp_connection_error(error)
            await self._drop_connection(connection)
        raise ServerUnavailable(
            f"The MCP server {name} does not say how its task {task} stands: {why}. Check it."
        )

    @_blocking
    async def check_result(
        self, name: str, server: Server, tool: str, result: CallToolResult
    ) -> None:
        """Check a task's result against the schema. Raises RuntimeError or ServerUnavailable."""
        connection = await self._open_connection(name, server, None)
        await connection.check_result(tool, result)

    def wait_for(self, work: Coroutine[Any, Any, R]) -> R:
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            # An exception that another thread raises in this one arrives between two steps.
            while True:
                try:
                    return future.result(TICK)
                except NotYet:
                    if future.done():
                        raise
        except BaseException:
            future.cancel()
            raise

    async def _open_connection(
        self, name: str, server: Server, folder: Path | None
    ) -> ServerConnection:
        if folder:
            alone = ServerConnection(name, server, folder)
            await alone.wait_until_open()
            return alone
        key = _server_key(server)
        async with self._locks.setdefault(key, asyncio.Lock()):
            connection = self._connections.get(key)
            if connection is None or not connection.is_usable:
                connection = ServerConnection(name, server, None)
                await connection.wait_until_open()
                self._connections[key] = connection
        return connection

    async def _drop_connection(self, connection: ServerConnection) -> None:
        for key, other in list(self._connections.items()):
            if other is connection:
                del self._connections[key]
        await connection.close()

    async def _drop_if_silent(self, connection: ServerConnection) -> None:
        """Drop a server that does not even list its tools any more."""
        try:
            async with asyncio.timeout(2):
                await connection.list_tools()
        except (ServerUnavailable, TimeoutError):
            await self._drop_connection(connection)


def _with_server_questions(called: Called, name: str, sending: CallProgress) -> Called:
    """Return the result with the questions that its server asked during the call."""
    if isinstance(called, CallToolResult) and sending.asked:
        asked_lines = "\n".join(f"[{name} asked meanwhile: {each}]" for each in sending.asked)
        called.content = [*called.content, TextContent(type="text", text=asked_lines)]
    return called


def _is_mcp_session_lost(error: MCPError, status: int) -> bool:
    """Whether an HTTP server reports that it does not know the session, so that nothing was done.

    Wording differs between servers, so the status decides. Without a session, 404 means an unknown
    method. Many servers written after the SDK's examples answer 400, which also reports bad
    arguments.
    """
    if error.code in (METHOD_NOT_FOUND, INVALID_PARAMS):
        return False
    return status == 404 or (status == 400 and "session" in error.message.lower())


def _is_timeout(error: MCPError) -> bool:
    return error.code == REQUEST_TIMEOUT and error.message == TIMEOUT_MESSAGE


def _call_failure(
    error: MCPError, name: str, server: Server, sending: CallProgress
) -> Exception | None:
    """Return what a failed call raises; None if the server was lost, which allows a retry."""
    if _is_timeout(error):
        return ServerCallInterrupted(f"{name} has not answered within {server.call_seconds} s")
    if _is_mcp_session_lost(error, sending.status):
        sending.was_sent = False
        return None
    if error.message == UNEXPLAINED:
        return _mcp_status_error(name, sending)
    lost = error.code == CONNECTION_CLOSED and error.message.startswith(LOST_MESSAGES)
    return None if lost else ServerCallFailed(error.message, error.code)


def _mcp_status_error(name: str, sending: CallProgress) -> Exception:
    """Convert a bare HTTP status to the error it means for a call."""
    if sending.status in (401, 403):
        return ServerUnavailable(
            f"The MCP server {name} refuses access ({sending.http_status_line}). Check the "
            "variables that mcp names for its headers, or its headers_command."
        )
    message = f"{name} answered {sending.http_status_line}"
    # A proxy may answer with this while the server is still working.
    return ServerCallInterrupted(message) if sending.status >= 500 else ServerCallFailed(message)


def _server_key(server: Server) -> str:
    """Return the key of equal servers: how they are reached, including variable values."""
    values = [os.environ.get(name) for name in (*server.env.values(), *server.headers.values())]
    reached = server.model_dump_json(exclude={"tools", "effects", "away"})
    return f"{reached}{values}"


@cache
def worker_mcp_servers() -> Servers:
    return Servers()
