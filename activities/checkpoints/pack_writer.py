"""Write packs that libgit2 can read, from new objects or from other packs.

Loose objects would work as well but cost a file each.
"""

import hashlib
import secrets
import zlib
from contextlib import suppress
from pathlib import Path

from activities.checkpoints.journal_records import JournalRecord
from activities.checkpoints.packfile import pack_entry_head, pack_head, pack_index

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
        """Add an object uncompressed: it is read once more and then thrown away."""
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
        """Complete the current pack."""
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
