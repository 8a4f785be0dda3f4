"""Journal content staged as packs, so that git can read it during a push."""

import secrets
import shutil
import time
from contextlib import suppress
from pathlib import Path

from activities.checkpoints.journal import journal_files
from activities.checkpoints.journal_records import HEAD, read_records
from activities.checkpoints.pack_writer import PackWriter

MAX_PACKS = 50
"""Each push stages new objects as a pack, and git searches all packs."""
STALE_SECONDS = 600
"""A folder untouched for this long belongs to a process that is gone."""


class PushStaging:
    """A repository's journal as packs of this process. For one thread."""

    def __init__(self, repository: Path) -> None:
        self._repository = repository
        self._folder = repository / "outgoing" / secrets.token_hex(6)
        self._read_offsets: dict[str, int] = {}
        """Offset up to which each journal file is staged."""
        self._packs = 0

    def stage(self) -> Path:
        """Stage what was appended since the last call; return the object folder. Raises OSError.

        Objects that are not in it were moved from the journal into the repository's own packs.
        """
        files = journal_files(self._repository / "journal")
        deleted = self._read_offsets.keys() - {file.name for file in files}
        if deleted or self._packs >= MAX_PACKS or not self._folder.exists():
            self._start_over()
        writer = PackWriter(self._folder)
        try:
            read = {file.name: self._add_records(file, writer) for file in files}
            writer.finish()
        except OSError:
            writer.discard()
            raise
        # Advance offsets only after the pack is complete, so records that hit ENOSPC are retried.
        self._read_offsets.update(read)
        self._packs += bool(writer.ids)
        return self._folder

    def _add_records(self, file: Path, writer: PackWriter) -> int:
        """Add the records appended to a journal file; return the offset to continue from."""
        end, sound = self._read_offsets.get(file.name, 0), True
        with suppress(FileNotFoundError):
            for offset, record in read_records(file, end):
                # On a mounted volume the rest may still arrive, so this position is read again.
                sound = sound and record.is_sound
                if record.is_sound:
                    writer.add(record)
                if sound:
                    end = offset + HEAD.size + len(record.data)
        return end

    def _start_over(self) -> None:
        self._read_offsets.clear()
        self._packs = 0
        old = time.time() - STALE_SECONDS
        for place in self._folder.parent.glob("*"):
            with suppress(FileNotFoundError):
                if place == self._folder or (place / "pack").stat().st_mtime < old:
                    shutil.rmtree(place, ignore_errors=True)
        self._folder = self._folder.with_name(secrets.token_hex(6))
        self._folder.mkdir(parents=True)
