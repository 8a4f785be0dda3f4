"""The format of an object in the journal: kind, length and id, then the raw content."""

import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from activities.checkpoints.checkpoint_errors import path_in_errors

HEAD = struct.Struct(">BQ20s")
COMMIT, TREE, BLOB = 1, 2, 3  # as in a pack
_NAMES = {COMMIT: b"commit", TREE: b"tree", BLOB: b"blob"}


class JournalRecord(NamedTuple):
    """One object. `id`: 20 bytes."""

    kind: int
    id: bytes
    data: bytes

    @classmethod
    def create(cls, kind: int, data: bytes) -> "JournalRecord":
        return cls(kind, _record_object_id(kind, data), data)

    @property
    def is_sound(self) -> bool:
        return _record_object_id(self.kind, self.data) == self.id

    @property
    def encoded_parts(self) -> tuple[bytes, bytes]:
        """Return the encoded record in two parts, so that a large content is not copied."""
        return HEAD.pack(self.kind, len(self.data), self.id), self.data


def decode_record(stored: bytes) -> JournalRecord | None:
    """The inverse of `encoded_parts`; None for anything that is no record."""
    if len(stored) < HEAD.size:
        return None
    kind, length, oid = HEAD.unpack_from(stored)
    if kind not in _NAMES or length != len(stored) - HEAD.size:
        return None
    return JournalRecord(kind, oid, stored[HEAD.size :])


def read_records(path: Path, start: int = 0) -> Iterator[tuple[int, JournalRecord]]:
    """Yield records with their offsets, unchecked, up to one that is truncated or no record."""
    with path.open("rb") as file, path_in_errors(path):
        size = os.fstat(file.fileno()).st_size
        offset = file.seek(start)
        while len(head := file.read(HEAD.size)) == HEAD.size:
            kind, length, oid = HEAD.unpack(head)
            if kind not in _NAMES or offset + HEAD.size + length > size:
                return
            data = file.read(length)
            if len(data) < length:
                return
            yield offset, JournalRecord(kind, oid, data)
            offset += HEAD.size + length


def _record_object_id(kind: int, data: bytes) -> bytes:
    # git hashes it: nothing else holds the GIL so briefly for large contents.
    digest = hashlib.sha1(b"%b %d\0" % (_NAMES[kind], len(data)))
    digest.update(data)
    return digest.digest()
