"""Raw answers, as received before the client validates them.

An answer to a call that does not fit is kept: the call was made, and the answer is evidence of it.
A page of tools is mended tool by tool.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, JSONRPCRequest, JSONRPCResponse, TextContent
from pydantic import ValidationError

from activities.mcp.tool_pages import LIST
from activities.mcp.transport import CALL_PROGRESS, CallProgress, ForwardingTransportStream
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
        transport: The connection to the server.
        mend_page: Returns a page of tools as the client can read it.
    """
    waiting: dict[str | int, CallProgress] = {}
    listing: set[str | int] = set()
    async with transport as (read, write):
        yield (
            _RawAnswerReader(read, waiting, listing, mend_page),
            _RawCallWriter(write, waiting, listing),
        )


class _RawCallWriter(ForwardingTransportStream[WriteStream[SessionMessage]]):
    def __init__(
        self,
        inner: WriteStream[SessionMessage],
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


class _RawAnswerReader(ForwardingTransportStream[ReadStream[SessionMessage | Exception]]):
    def __init__(
        self,
        inner: ReadStream[SessionMessage | Exception],
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
    """Return a raw answer with what is wrong with it; None if no answer to a call came.

    Args:
        result: The server's result.
        why: The client's error.
    """
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
