"""Raw answers, as received before the client validates them.

An answer to a call that does not fit is kept: the call was made, and the answer is evidence of it.
A page of tools is mended tool by tool, since the client takes a page or none of it. What a tool
need not have, such as an icon, is left out of it; a tool that does not fit without is left out of
the page.
"""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, JSONRPCRequest, JSONRPCResponse, TextContent, Tool
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from activities.mcp.transport import (
    CALL_PROGRESS,
    CallProgress,
    ForwardingTransportStream,
    ReadStream,
    TransportStreams,
    WriteStream,
)
from activities.redaction.secrets import redact
from protocol.short_text import one_line
from protocol.validation_errors import first_validation_errors

CALL = "tools/call"
MendPage = Callable[[dict[str, Any]], dict[str, Any]]
COMPLETE = (None, "complete")
"""Types of results that need no further request."""
OURS = ("resultType", "_meta")
"""Keys that mean nothing to the model."""
MAX_WAITING = 1000
ODD_RESULT = (
    "[The call was made, and this is what came. It is not what the server declared: {why}. "
    "Repeating the call does not mend that.]"
)


@asynccontextmanager
async def record_raw_answers(
    transport: AbstractAsyncContextManager[TransportStreams], mend_page: MendPage
) -> AsyncIterator[TransportStreams]:
    """Wrap the transport to record the answer to each call in its `CallProgress`.

    Args:
        mend_page: Returns a page of tools as the client can read it.
    """
    waiting: dict[str | int, CallProgress] = {}
    listing: set[str | int] = set()
    async with transport as (read, write):
        yield (
            _RawAnswerReader(read, waiting, listing, mend_page),
            _RawCallWriter(write, waiting, listing),
        )


class _RawCallWriter(ForwardingTransportStream[WriteStream]):
    def __init__(
        self,
        inner: WriteStream,
        waiting: dict[str | int, CallProgress],
        listing: set[str | int],
    ) -> None:
        super().__init__(inner)
        self._waiting = waiting
        self._listing = listing

    async def send(self, item: SessionMessage, /) -> None:
        message, sending = item.message, CALL_PROGRESS.get()
        if sending and isinstance(message, JSONRPCRequest) and message.method == CALL:
            if len(self._waiting) > MAX_WAITING:
                # Calls that were never answered.
                self._waiting.clear()
            self._waiting[message.id] = sending
        if isinstance(message, JSONRPCRequest) and message.method == LIST:
            self._listing.add(message.id)
        await self._inner.send(item)


class _RawAnswerReader(ForwardingTransportStream[ReadStream]):
    def __init__(
        self,
        inner: ReadStream,
        waiting: dict[str | int, CallProgress],
        listing: set[str | int],
        mend_page: MendPage,
    ) -> None:
        super().__init__(inner)
        self._waiting = waiting
        self._listing = listing
        self._mend_page = mend_page

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._record_raw_answer(await self._inner.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._record_raw_answer(await self._inner.__anext__())

    def _record_raw_answer(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            sending = self._waiting.pop(item.message.id, None)
            if sending:
                sending.result = item.message.result
            if item.message.id in self._listing:
                self._listing.discard(item.message.id)
                item.message.result = self._mend_page(item.message.result)
        return item


def salvage_raw_answer(result: dict[str, Any] | None, why: Exception) -> CallToolResult | None:
    """Return a raw answer with what is wrong with it; None if no answer to a call came."""
    if result is None or result.get("resultType") not in COMPLETE:
        return None
    try:
        tool_result = CallToolResult.model_validate(result)
    except ValidationError as error:
        # The client's own error covers every type of answer that it might have been.
        why = error
        sent = {key: value for key, value in result.items() if key not in OURS}
        text = json.dumps(sent, ensure_ascii=False)
        is_error = result.get("isError") is True
        tool_result = CallToolResult(
            content=[TextContent(type="text", text=text)], is_error=is_error
        )
    reason = first_validation_errors(why) if isinstance(why, ValidationError) else str(why)
    note = ODD_RESULT.format(why=one_line(redact(reason), 200).rstrip("."))
    tool_result.content = [*tool_result.content, TextContent(type="text", text=note)]
    return tool_result


LIST = "tools/list"
DISPENSABLE = ("icons", "annotations", "title", "execution", "_meta", "description", "outputSchema")
"""What a tool can be offered without. Without annotations a call counts as one that must not be
repeated.
"""
REASON = 200


def mend_tool_page(page: dict[str, Any], version: str, left_out: dict[str, str]) -> dict[str, Any]:
    """Return a page of tools that the client reads.

    Args:
        left_out: Receives the names of tools that do not fit, with the reason.
    """
    tools = page.get("tools")
    if not isinstance(tools, list):
        return page
    cursor = page.get("nextCursor")
    rest = {key: value for key, value in page.items() if key not in ("tools", "nextCursor")}
    if cursor and isinstance(cursor, str):
        rest["nextCursor"] = cursor
    frame = {**rest, "tools": []}
    if _misfit(None, frame, version):
        return page
    kept: list[dict[str, Any]] = []
    for place, tool in enumerate(tools, 1):
        fitting = _fitting_tool(tool, frame, version)
        if isinstance(fitting, str):
            name = tool.get("name") if isinstance(tool, dict) else None
            known = name if isinstance(name, str) and name else f"number {place}"
            left_out[one_line(redact(known), 100)] = one_line(redact(fitting), REASON).rstrip(".")
        else:
            kept.append(fitting)
    return {**rest, "tools": kept}


def _fitting_tool(tool: object, frame: dict[str, Any], version: str) -> dict[str, Any] | str:
    """Return the tool, if need be without what it can do without; else why it does not fit."""
    if not isinstance(tool, dict):
        return "its declaration is no object"
    if not _misfit(tool, frame, version):
        return tool
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        return "it has no name"
    if not isinstance(schema := tool.get("inputSchema"), dict):
        return "it declares no inputSchema" if schema is None else "its inputSchema is no schema"
    if "type" not in schema:
        tool = {**tool, "inputSchema": {"type": "object", **schema}}
    for key in DISPENSABLE:
        less = {name: value for name, value in tool.items() if name != key}
        # A key that fits stays.
        bare = {name: value for name, value in less.items() if name not in DISPENSABLE}
        if key in tool and _misfit({**bare, key: tool[key]}, frame, version):
            tool = less
    return _misfit(tool, frame, version) or tool


def _misfit(tool: dict[str, Any] | None, frame: dict[str, Any], version: str) -> str:
    """Return why the client would not read a tool, or the frame; empty if it would."""
    try:
        if tool is not None:
            Tool.model_validate(tool)
        tools = [] if tool is None else [tool]
        validate_server_result(LIST, version, {**frame, "tools": tools})
    except ValidationError as error:
        return first_validation_errors(error)
    return ""
