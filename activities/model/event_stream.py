"""Server-sent events: the format of a streamed reply."""

from __future__ import annotations

from collections.abc import Iterator

DONE = b"[DONE]"
MARK = b"\xef\xbb\xbf"
"""Byte order mark, which the standard allows at the start."""


class EventParser:
    """Parses the events of one stream, which arrives in pieces of any size.

    Follows https://html.spec.whatwg.org/multipage/server-sent-events.html. Event names, ids and
    retry times, which chat completions do not use, are ignored like comments.
    """

    def __init__(self) -> None:
        self.is_over = False
        """Whether the final event `[DONE]` has arrived."""
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that this piece completes."""
        lines = (self._rest + piece).splitlines(keepends=True)
        # A carriage return at the end may be half of a line end.
        is_complete = not lines or lines[-1].endswith(b"\n")
        self._rest = b"" if is_complete else lines.pop()
        for line in lines:
            name, _, value = line.rstrip(b"\r\n").partition(b":")
            if name.removeprefix(MARK) == b"data":
                self._data.append(value.removeprefix(b" "))
            elif self._data and not name and not value:
                data, self._data = b"\n".join(self._data), []
                if data.startswith(DONE):
                    self.is_over = True
                    return
                if data:
                    yield data
