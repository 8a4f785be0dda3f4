"""Objects laid out so that libgit2 can read them: packs without deltas, written here.

Loose objects would do as well but cost a file each.
"""

import hashlib
import secrets
import struct
import zlib
from collections.abc import Iterable
from contextlib import suppress
from itertools import accumulate
from pathlib import Path

from activities.checkpoints.records import Record

MOST_BYTES = 1 << 30
"""Of one pack: an index has 31 bits for a place."""


class Staging:
    """Takes objects; `finish` makes them readable below `<folder>/pack`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "pack"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.ids: set[bytes] = set()
        self._begin()

    def add(self, record: Record) -> None:
        if record.id in self.ids:
            return
        self.ids.add(record.id)
        # Not compressed: what is read once more and thrown away.
        stored = _head(record.kind, len(record.data)) + zlib.compress(record.data, 0)
        self._places.append((record.id, zlib.crc32(stored), self._file.tell()))
        self._file.write(stored)
        if self._file.tell() > MOST_BYTES:
            self.finish()
            self._begin()

    def finish(self) -> None:
        """Complete the pack at hand."""
        count = len(self._places)
        if not count:
            self._file.close()
            self._path.unlink()
            return
        self._file.seek(0)
        self._file.write(_pack_head(count))
        self._file.seek(0)
        digest = hashlib.file_digest(self._file, "sha1").digest()
        self._file.write(digest)
        self._file.close()
        self._path.with_suffix(".idx").write_bytes(_index(sorted(self._places), digest))

    def drop(self) -> None:
        """Leave nothing of the pack at hand, which could not be written."""
        with suppress(OSError):
            self._file.close()
        for suffix in (".idx", ".pack"):
            self._path.with_suffix(suffix).unlink(missing_ok=True)

    def _begin(self) -> None:
        # A name never used before: libgit2 knows packs by their paths for as long as it lives.
        self._path = self._folder / f"pack-{secrets.token_hex(20)}.pack"
        self._file = self._path.open("w+b")
        self._file.write(_pack_head(0))
        self._places: list[tuple[bytes, int, int]] = []


def _pack_head(count: int) -> bytes:
    return b"PACK" + struct.pack(">II", 2, count)


def _head(kind: int, length: int) -> bytes:
    """Kind and length as a pack has them: four bits of the length first, then seven at a time."""
    byte, length = kind << 4 | length & 15, length >> 4
    head = bytearray()
    while length:
        head.append(byte | 0x80)
        byte, length = length & 0x7F, length >> 7
    return bytes([*head, byte])


def _index(places: Iterable[tuple[bytes, int, int]], digest: bytes) -> bytes:
    """A pack's index, version 2, of its objects' ids, checksums and offsets, sorted."""
    ids, checksums, offsets = zip(*places, strict=True)
    firsts = [0] * 256
    for oid in ids:
        firsts[oid[0]] += 1
    index = b"".join(
        (
            b"\xfftOc" + struct.pack(">I", 2),
            struct.pack(">256I", *accumulate(firsts)),
            *ids,
            struct.pack(f">{len(checksums)}I", *checksums),
            struct.pack(f">{len(offsets)}I", *offsets),
            digest,
        )
    )
    return index + hashlib.sha1(index).digest()
