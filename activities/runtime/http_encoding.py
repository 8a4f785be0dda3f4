"""The body of an answer as it was before the server packed it, whole or not at all.

By hand, since the HTTP client gives one that broke off as if that were all, of several parts packed
one after the other the first alone, and what is packed in a way it does not know as it came.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from protocol.errors import Invalid

ACCEPT_HEADERS = {"Accept-Encoding": "gzip, deflate"}
"""To be asked with: of itself the client also asks for what happens to be installed beside it."""
PIECE = 1_000_000
"""Bytes that are unpacked at a time, whatever they come from."""
_GZIP = 31
_ZLIB = 15


class DamagedBody(Invalid):
    """What came cannot be unpacked; the message says why, in a few words."""


class BodyDecoder:
    """Unpacks one body.

    Args:
        encodings: The values of its Content-Encoding.

    Raises:
        DamagedBody: it is packed in a way that nobody asked for.
    """

    def __init__(self, encodings: list[str]) -> None:
        named = [name for each in encodings if (name := each.strip().lower()) != "identity"]
        if named not in ([], ["gzip"], ["x-gzip"], ["deflate"]):
            raise DamagedBody(f"packed as {', '.join(named)[:80]}, where only gzip was asked for")
        self._kind = named[0] if named else ""
        self._part: zlib._Decompress | None = None
        self._over = False

    def decode_pieces(self, data: bytes) -> Iterator[bytes]:
        """What the next bytes of the body hold."""
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
            # What follows and is no part of its own fills up, and is passed over everywhere.
            if data and self._kind != "deflate" and b"\x1f\x8b".startswith(data[:2]):
                self._part = None
            self._over = bool(data) and self._part is not None

    def check_complete(self) -> None:
        """There is no more. Raises `DamagedBody` if there should be."""
        if self._part is not None and not self._part.eof:
            raise DamagedBody("what is packed breaks off before its end")

    def _window_bits(self, data: bytes) -> int:
        if self._kind != "deflate":
            return _GZIP
        # The bare form has no beginning of its own, and servers send either.
        return _ZLIB if data[0] & 15 == 8 else -_ZLIB
