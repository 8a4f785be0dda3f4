"""Packs and indexes as bytes; see https://git-scm.com/docs/pack-format."""

import hashlib
import secrets
import struct
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate, pairwise
from pathlib import Path

from activities.checkpoints.checkpoint_errors import path_in_errors
from activities.checkpoints.journal_records import JournalRecord

INDEX_HEAD = b"\xfftOc\x00\x00\x00\x02"
_FIRST_ID = len(INDEX_HEAD) + 256 * 4
"""Offset of the first id: after the header and the 256 cumulative counts by first byte."""
_DIGEST = 20
_OFFSET_DELTA, _REF_DELTA = 6, 7
"""Entry types of deltas: base given by offset, base given by id."""


def pack_head(count: int) -> bytes:
    return b"PACK" + struct.pack(">II", 2, count)


def pack_entry_head(kind: int, length: int) -> bytes:
    """Return an entry's type and size: four bits of the size first, then seven each."""
    byte, length = kind << 4 | length & 15, length >> 4
    head = bytearray()
    while length:
        head.append(byte | 0x80)
        byte, length = length & 0x7F, length >> 7
    return bytes([*head, byte])


def pack_index(objects: Iterable[tuple[bytes, int, int]], digest: bytes) -> bytes:
    """Return a pack's index from sorted ids, checksums and offsets below 2^31."""
    ids, checksums, offsets = zip(*objects, strict=True)
    firsts = [0] * 256
    for oid in ids:
        firsts[oid[0]] += 1
    data = b"".join(
        (
            INDEX_HEAD,
            struct.pack(">256I", *accumulate(firsts)),
            *ids,
            struct.pack(f">{len(checksums)}I", *checksums),
            struct.pack(f">{len(offsets)}I", *offsets),
            digest,
        )
    )
    return data + hashlib.sha1(data).digest()


def read_pack_offsets(path: Path) -> list[tuple[int, bytes]]:
    """Return the offsets of a pack's objects in ascending order, from its index."""
    with path_in_errors(path.with_suffix(".idx")):
        data = path.with_suffix(".idx").read_bytes()
    count = int.from_bytes(data[_FIRST_ID - 4 : _FIRST_ID], "big")
    ids_end = _FIRST_ID + _DIGEST * count
    if not data.startswith(INDEX_HEAD) or len(data) < ids_end + 8 * count + 2 * _DIGEST:
        raise ValueError(f"{path.with_suffix('.idx')} is no index that is known here.")
    ids = (data[start : start + _DIGEST] for start in range(_FIRST_ID, ids_end, _DIGEST))
    offsets = struct.unpack_from(f">{count}I", data, ids_end + 4 * count)
    return sorted(
        (_resolve_pack_offset(offset, data, ids_end + 8 * count), oid)
        for offset, oid in zip(offsets, ids, strict=True)
    )


def is_intact_pack_index(path: Path) -> bool:
    """Whether the file is a complete index. Raises OSError."""
    try:
        with path_in_errors(path):
            data = path.read_bytes()
    except FileNotFoundError:
        return False
    return hashlib.sha1(data[:-_DIGEST]).digest() == data[-_DIGEST:]


def _resolve_pack_offset(offset: int, index: bytes, table: int) -> int:
    """Return an offset; one of 2 GB or more is stored in a separate table."""
    start = table + 8 * (offset & 0x7FFFFFFF)
    return int.from_bytes(index[start : start + 8], "big") if offset >> 31 else offset


def read_pack_entries(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """Yield the ids and entries of a pack as stored. Entries may be copied into any pack that also
    has the bases of their deltas.

    The content is not checked, so it may be damaged. Raises ValueError, OSError.
    """
    offsets = read_pack_offsets(path)
    ids = dict(offsets)
    with path.open("rb") as file, path_in_errors(path):
        ends = [offset for offset, _ in offsets] + [path.stat().st_size - _DIGEST]
        for start, end in pairwise(ends):
            file.seek(start)
            yield ids[start], _packfile_delta_by_base_id(file.read(end - start), start, ids)


def _packfile_delta_by_base_id(entry: bytes, offset: int, ids: dict[int, bytes]) -> bytes:
    """Return an entry whose delta names its base by id instead of by offset."""
    if not entry or entry[0] >> 4 & 7 != _OFFSET_DELTA:
        return entry
    try:
        length = next(place for place, byte in enumerate(entry) if byte < 0x80) + 1
        end = length
        back = entry[end] & 0x7F
        while entry[end] & 0x80:
            end += 1
            back = (back + 1) << 7 | entry[end] & 0x7F
        base = ids[offset - back]
    except (StopIteration, LookupError):
        raise ValueError("A delta is against nothing.") from None
    return bytes([entry[0] | _REF_DELTA << 4]) + entry[1:length] + base + entry[end + 1 :]


MAX_BYTES = 1 << 30
"""Largest pack: an offset in the index has 31 bits."""


class PackWriter:
    """Collects objects; `finish` makes them readable below `<folder>/pack`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "pack"
        self._folder.mkdir(parents=True, exist_ok=True)
        self.ids: set[bytes] = set()
        self._start_pack()

    def add(self, record: JournalRecord) -> None:
        if record.id not in self.ids:
            head = pack_entry_head(record.kind, len(record.data))
            self.copy(record.id, head + zlib.compress(record.data, 0))
        if self._file.tell() > MAX_BYTES:
            self.finish()
            self._start_pack()

    def copy(self, oid: bytes, entry: bytes) -> None:
        """Copy an entry as another pack stores it. A delta's base must be copied as well."""
        if oid not in self.ids:
            self.ids.add(oid)
            self._places.append((oid, zlib.crc32(entry), self._file.tell()))
            self._file.write(entry)

    def finish(self) -> None:
        count = len(self._places)
        if not count:
            self._file.close()
            self.pack.unlink()
            return
        self._file.seek(0)
        self._file.write(pack_head(count))
        self._file.seek(0)
        digest = hashlib.file_digest(self._file, "sha1").digest()
        self._file.write(digest)
        self._file.close()
        self.pack.with_suffix(".idx").write_bytes(pack_index(sorted(self._places), digest))

    def discard(self) -> None:
        """Remove the current pack, which could not be written."""
        with suppress(OSError):
            self._file.close()
        for suffix in (".idx", ".pack"):
            self.pack.with_suffix(suffix).unlink(missing_ok=True)

    def _start_pack(self) -> None:
        # Use a new name each time: libgit2 identifies packs by path for as long as it runs.
        self.pack = self._folder / f"pack-{secrets.token_hex(20)}.pack"
        self._file = self.pack.open("w+b")
        self._file.write(pack_head(0))
        self._places: list[tuple[bytes, int, int]] = []
