"""One connection to a server, from start to end."""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from mcp import Client, MCPError
from mcp.client.session import ClientRequestContext
from mcp.types import (
    CallToolResult,
    ElicitRequestParams,
    ElicitResult,
    Implementation,
    InputRequiredResult,
    InputResponses,
    RequestParamsMeta,
    Result,
    Tool,
)
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from activities.mcp.call_errors import ServerUnavailable
from activities.mcp.elicitation import Elicited
from activities.mcp.raw_answers import mend_tool_page, record_raw_answers
from activities.mcp.tasks import TaskParams, TaskRequest, Tasks, TaskState
from activities.mcp.transport import (
    CALL_PROGRESS,
    UNEXPLAINED,
    CallProgress,
    StderrTail,
    TransportStreams,
    open_http_transport,
    open_process_transport,
)
from activities.redaction.credentials import without_credentials
from activities.redaction.secrets import redact
from config.schema.mcp_servers import Server
from protocol.short_text import one_line
from protocol.validation_errors import first_validation_errors

KEY = "longhaul/idempotencyKey"
"""Name in a call's `_meta` of the key that its retries share."""
Called = CallToolResult | InputRequiredResult | Result
"""A result, a question, or a task."""
MAX_PAGES = 50
LISTED_SECONDS = 30

# A server may print lines that are no messages; each would be a traceback in the worker's log.
logging.getLogger("mcp.client.stdio").setLevel(logging.CRITICAL)


R = TypeVar("R")


@dataclass(frozen=True)
class Turn:
    """The state in which a call continues after its server asked something."""

    responses: InputResponses | None = None
    state: str | None = None
    """The server's own state, unchanged."""


class ServerConnection:
    """Runs in a task of its own, since the task that opens the connection must close it."""

    def __init__(self, name: str, server: Server, folder: Path | None) -> None:
        self.name = name
        self.server = server
        self._folder = folder
        self._stderr_tail = StderrTail()
        self._ready = asyncio.Event()
        self._closing = asyncio.Event()
        self._client: Client | None = None
        self._failure = ""
        self.left_out: dict[str, str] = {}
        """The declared tools that do not fit the protocol, with the reason."""
        self._under_way: list[CallProgress] = []
        self._task = asyncio.create_task(self._run_session())

    async def wait_until_open(self) -> None:
        """Wait until the server has answered.

        Raises:
            ServerUnavailable: it did not, and was stopped.
        """
        try:
            async with asyncio.timeout(self.server.start_seconds):
                await self._ready.wait()
        except TimeoutError:
            self._failure = f"it did not answer within {self.server.start_seconds} s"
            await self.close()
        except asyncio.CancelledError:  # nobody waits for it any more
            self._task.cancel()
            raise
        if not self.is_usable:
            url = self.server.url
            what = without_credentials(url) if url else self.server.command[0]
            raise ServerUnavailable(
                f"The MCP server {self.name} ({what}) cannot be reached: {self._failure}"
                f"{self.last_words}. Check that it runs as configured."
            )

    @property
    def is_usable(self) -> bool:
        return self._client is not None and not self._task.done()

    @property
    def last_words(self) -> str:
        """Return the last output of the process for messages, if any."""
        stderr = redact(self._stderr_tail.text)[-500:]
        return f" (it said: {stderr})" if stderr else ""

    async def call_tool(
        self, tool: str, arguments: dict[str, Any], key: str, sending: CallProgress, turn: Turn
    ) -> Called:
        """Call a tool. Raises MCPError, and whatever the client raises for a malformed answer."""
        CALL_PROGRESS.set(sending)
        assert self._client
        self._under_way.append(sending)
        called = self._answered(
            self._client.session.call_tool(
                tool,
                arguments,
                read_timeout_seconds=self.server.call_seconds,
                meta=cast("RequestParamsMeta", {KEY: key}),
                input_responses=turn.responses,
                request_state=turn.state,
                # The workflow handles questions and answers: a person may take a day.
                allow_input_required=True,
                allow_claimed=True,
            )
        )
        try:
            return await called
        finally:
            self._under_way.remove(sending)

    async def ask_about_task(
        self, method: str, task: str, responses: InputResponses | None
    ) -> TaskState | Result:
        """Get, update or cancel a task; only getting returns a state. Raises as `call_tool`."""
        assert self._client
        request = TaskRequest(
            method=method, params=TaskParams(task_id=task, input_responses=responses)
        )
        kind: type[TaskState] | type[Result] = TaskState if method == "tasks/get" else Result
        sent = self._client.session.send_request(
            request, kind, request_read_timeout_seconds=self.server.call_seconds
        )
        return await self._answered(sent)

    async def check_result(self, tool: str, result: CallToolResult) -> None:
        """Check a task's result against the tool's schema. Raises RuntimeError."""
        assert self._client
        await self._client.session.validate_tool_result(tool, result)

    async def _answered(self, question: Coroutine[Any, Any, R]) -> R:
        answering = asyncio.create_task(question)
        try:
            # Over HTTP the connection may end without notifying those who wait for an answer.
            await asyncio.wait({answering, self._task}, return_when=asyncio.FIRST_COMPLETED)
            if not answering.done():
                await asyncio.wait({answering}, timeout=1)
            if not answering.done():
                raise ConnectionError(self._failure or "the connection ended")
            return answering.result()
        finally:
            # Also if the answer is no longer needed, so that the server is informed.
            answering.cancel()

    async def list_tools(self) -> list[Tool]:
        """Return all tools that the server declares, but for those in `left_out`.

        Raises:
            ServerUnavailable: it does not answer.
        """
        listed: list[Tool] = []
        self.left_out.clear()
        cursor: str | None = None
        try:
            assert self._client
            async with asyncio.timeout(LISTED_SECONDS):
                for _ in range(MAX_PAGES):
                    page = await self._client.list_tools(cursor=cursor)
                    listed += page.tools
                    cursor = page.next_cursor
                    if cursor is None:
                        break
        except Exception as error:
            raise ServerUnavailable(
                f"The MCP server {self.name} did not list its tools: "
                f"{describe_mcp_connection_error(error)}"
                f"{self.last_words}. Check it, or have the job go on without it, "
                f"mcp.{self.name}.away."
            ) from error
        return listed

    async def close(self) -> None:
        self._closing.set()
        if not self._ready.is_set():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=10)
        if not self._task.done():
            self._task.cancel()

    async def _run_session(self) -> None:
        info = Implementation(name="longhaul", version="1")
        CALL_PROGRESS.set(opening := CallProgress())
        try:
            client = Client(
                self._open_transport(),
                cache=None,
                client_info=info,
                # A process for one call would end before a person or a task is done.
                extensions=None if self._folder else [Tasks()],
                elicitation_callback=None if self._folder else self._answer_at_once,
            )
            async with client:
                self._client = client
                self._ready.set()
                await self._closing.wait()
        except Exception as error:
            why = describe_mcp_connection_error(error)
            self._failure = self._failure or (
                f"it answered {opening.http_status_line}" if why == UNEXPLAINED else why
            )
        finally:
            self._client = None
            self._ready.set()

    async def _answer_at_once(
        self, context: ClientRequestContext, params: ElicitRequestParams
    ) -> ElicitResult:
        """Answer a question that a server of the older protocol asks during a call.

        It cannot wait for a person, so it gets its own defaults, or that nobody answered.
        """
        question = Elicited("", params)
        for sending in self._under_way:
            sending.asked.append(f"{question.question} It got: {question.default}.")
        return question.lapsed()

    def _open_transport(self) -> AbstractAsyncContextManager[TransportStreams]:
        if self.server.url:
            transport = open_http_transport(self.server)
        else:
            transport = open_process_transport(self.server, self._folder, self._stderr_tail)
        return record_raw_answers(transport, self._mend_tool_page)

    def _mend_tool_page(self, page: dict[str, Any]) -> dict[str, Any]:
        version = self._client.protocol_version if self._client else ""
        # A version that the client does not know has no form to check against.
        is_known = version in KNOWN_PROTOCOL_VERSIONS
        return mend_tool_page(page, version, self.left_out) if is_known else page


def describe_mcp_connection_error(error: BaseException) -> str:
    """Return an error on one line; for a group, its first member."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ValidationError):
        text = f"the answer does not fit the protocol: {first_validation_errors(error)}"
    elif isinstance(error, (MCPError, ServerUnavailable)):
        text = str(error)
    else:
        text = f"{type(error).__name__}: {error}"
    return one_line(redact(text), 300).rstrip(".")
