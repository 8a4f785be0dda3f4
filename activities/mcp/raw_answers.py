"""Answers to calls as they came, before the client holds them against protocol and schema.

What does not fit is no reason to lose it: the call was made, and what came is evidence of it.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Self

from mcp.client._transport import ReadStream, TransportStreams, WriteStream
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, JSONRPCRequest, JSONRPCResponse, TextContent
from pydantic import ValidationError

from activities.mcp.transport import CALL_PROGRESS, CallProgress, ForwardingStream
from activities.redaction.secrets import redact
from protocol.text import one_line
from protocol.validation_errors import first_errors

CALL = "tools/call"
COMPLETE = (None, "complete")
"""Kinds of results that are not asked for anything more."""
OURS = ("resultType", "_meta")
"""Keys that say nothing to the model."""
MAX_WAITING = 1000
ODD_RESULT = (
    "[The call was made, and this is what came. It is not what the server declared: {why}. "
    "Repeating the call does not mend that.]"
)


@asynccontextmanager
async def note_answers(
    transport: AbstractAsyncContextManager[TransportStreams],
) -> AsyncIterator[TransportStreams]:
    """The transport, with the answer to each call noted in its `Sending`."""
    waiting: dict[str | int, CallProgress] = {}
    async with transport as (read, write):
        yield _NotingReader(read, waiting), _NotingWriter(write, waiting)


class _NotingWriter(ForwardingStream[WriteStream[SessionMessage]]):
    def __init__(
        self, inner: WriteStream[SessionMessage], waiting: dict[str | int, CallProgress]
    ) -> None:
        super().__init__(inner)
        self._waiting = waiting

    async def send(self, item: SessionMessage, /) -> None:
        message, sending = item.message, CALL_PROGRESS.get()
        if sending and isinstance(message, JSONRPCRequest) and message.method == CALL:
            if len(self._waiting) > MAX_WAITING:
                # Of calls that were never answered.
                self._waiting.clear()
            self._waiting[message.id] = sending
        await self._inner.send(item)


class _NotingReader(ForwardingStream[ReadStream[SessionMessage | Exception]]):
    def __init__(
        self, inner: ReadStream[SessionMessage | Exception], waiting: dict[str | int, CallProgress]
    ) -> None:
        super().__init__(inner)
        self._waiting = waiting

    @property
    def last_context(self) -> Any:
        return getattr(self._inner, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return self._note_answer(await self._inner.receive())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return self._note_answer(await self._inner.__anext__())

    def _note_answer(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse):
            sending = self._waiting.pop(item.message.id, None)
            if sending:
                sending.result = item.message.result
        return item


def odd_result(result: dict[str, Any] | None, why: Exception) -> CallToolResult | None:
    """What came, with what is odd about it; None where no answer to a call did.

    Args:
        result: As the server sent it.
        why: What the client makes of it.
    """
    if result is None or result.get("resultType") not in COMPLETE:
        return None
    try:
        tool_result = CallToolResult.model_validate(result)
    except ValidationError as error:
        # The client's own error is of all the kinds of answers that there might have been.
        why = error
        sent = {key: value for key, value in result.items() if key not in OURS}
        text = json.dumps(sent, ensure_ascii=False)
        is_error = result.get("isError") is True
        tool_result = CallToolResult(
            content=[TextContent(type="text", text=text)], is_error=is_error
        )
    said = first_errors(why) if isinstance(why, ValidationError) else str(why)
    note = ODD_RESULT.format(why=one_line(redact(said), 200).rstrip("."))
    tool_result.content = [*tool_result.content, TextContent(type="text", text=note)]
    return tool_result
