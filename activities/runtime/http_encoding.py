"""Decompresses an HTTP body completely, or fails.

The HTTP client passes off a truncated body as complete, reads only the first of several compressed
parts, and returns unknown encodings undecoded.
"""

import zlib
from collections.abc import Iterator

from protocol.errors import Invalid

ACCEPT_HEADERS = {"Accept-Encoding": "gzip, deflate"}
"""Request headers; by default the client also offers encodings that happen to be installed."""
PIECE = 1_000_000
"""Most bytes decompressed at a time."""
_GZIP = 31
_ZLIB = 15


class DamagedBody(Invalid):
    """The body cannot be decompressed; the message says why in a few words."""


class BodyDecoder:
    def __init__(self, encodings: list[str]) -> None:
        named = [name for each in encodings if (name := each.strip().lower()) != "identity"]
        if named not in ([], ["gzip"], ["x-gzip"], ["deflate"]):
            raise DamagedBody(f"packed as {', '.join(named)[:80]}, where only gzip was asked for")
        self._kind = named[0] if named else ""
        self._part: zlib._Decompress | None = None
        self._over = False

    def decode_pieces(self, data: bytes) -> Iterator[bytes]:
        if not self._kind:
            yield data
            return
        while data and not self._over:
            if self._part is None:
                self._part = zlib.decompressobj(self._window_bits(data))
            try:
                while piece := self._part.decompress(data, PIECE):
                    yield piece
                    data = self._part.unconsumed_tail
            except zlib.error as error:
                raise DamagedBody(str(error)) from None
            data = self._part.unused_data
            # Trailing bytes that start no new part are padding, which every client ignores.
            if data and self._kind != "deflate" and b"\x1f\x8b".startswith(data[:2]):
                self._part = None
            self._over = bool(data) and self._part is not None

    def check_complete(self) -> None:
        """Check at the end of the body. Raises `DamagedBody` if it is truncated."""
        if self._part is not None and not self._part.eof:
            raise DamagedBody("what is packed breaks off before its end")

    def _window_bits(self, data: bytes) -> int:
        if self._kind != "deflate":
            return _GZIP
        # Raw deflate has no header, and servers send either form.
        return _ZLIB if data[0] & 15 == 8 else -_ZLIB
