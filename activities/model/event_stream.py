"""Server-sent events: the format of a streamed reply."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

DONE = b"[DONE]"
MARK = b"\xef\xbb\xbf"
"""Byte order mark, which the standard allows at the start."""
MAX_STRAY = 2_000
"""Most bytes kept of lines that belong to no event."""


class ServerEvent(NamedTuple):
    """One event of a stream."""

    name: str
    """What its `event` line says; empty without one."""
    data: bytes


class EventParser:
    """Parses the events of one stream, which arrives in pieces of any size.

    Follows https://html.spec.whatwg.org/multipage/server-sent-events.html. Ids and retry times,
    which no endpoint uses, are ignored like comments.
    """

    def __init__(self) -> None:
        self.is_over = False
        """Whether the final event `[DONE]` has arrived."""
        self.stray = b""
        """Lines that are none of an event stream, such as a page in its place."""
        self._rest = b""
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[ServerEvent]:
        """Yield each event that this piece completes."""
        lines = (self._rest + piece).splitlines(keepends=True)
        # A carriage return at the end may be half of a line end.
        is_complete = not lines or lines[-1].endswith(b"\n")
        self._rest = b"" if is_complete else lines.pop()
        for line in lines:
            if (event := self._read_line(line)) is not None:
                yield event
            if self.is_over:
                return

    def end(self) -> None:
        """Handle the end of the stream: a final event need not be followed by an empty line."""
        self._read_line(self._rest)
        self._rest = b""
        self._read_line(b"")

    def _read_line(self, line: bytes) -> ServerEvent | None:
        name, colon, value = line.rstrip(b"\r\n").partition(b":")
        name = name.removeprefix(MARK)
        if name == b"data":
            self._data.append(value.removeprefix(b" "))
        elif name == b"event":
            self._name = value.strip()
        elif not name and not colon:
            event = ServerEvent(self._name.decode(errors="replace"), b"\n".join(self._data))
            self._name, self._data = b"", []
            self.is_over |= event.data.startswith(DONE)
            return event if event.data and not self.is_over else None
        elif name not in (b"", b"id", b"retry") and len(self.stray) < MAX_STRAY:
            self.stray += line
        return None
