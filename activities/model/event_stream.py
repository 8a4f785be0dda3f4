"""Server-sent events: the form in which a reply is streamed."""

from __future__ import annotations

from collections.abc import Iterator

DONE = b"[DONE]"
MARK = b"\xef\xbb\xbf"
"""What some servers, by the standard, put before the first byte."""


class EventParser:
    """The data of the events of one stream, which comes in pieces of any size.

    After https://html.spec.whatwg.org/multipage/server-sent-events.html; names, ids and retry
    times, which chat completions do not use, are passed over like comments.
    """

    def __init__(self) -> None:
        self.is_over = False
        """Whether the last event, which has no data of its own, was there."""
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """The data of each event that is complete with this piece."""
        lines = (self._rest + piece).splitlines(keepends=True)
        # What ends in a carriage return may be half of a line's end.
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
