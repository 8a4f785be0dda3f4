"""Cache of replies and call results that were paid for, kept at most until the phase ends.

A reply is stored before its activity returns. If the worker dies between the two, the activity's
retry finds it by key and does not ask the model again.
"""

import os
import secrets
from contextlib import suppress
from pathlib import Path

from activities.checkpoints.disk_access import read_whole, write_whole

ROOM_BYTES = 256 << 10
"""Larger than nearly every reply of a model."""


class ResultCache:
    """Small files in one job's repository, named by key, mostly run and activity id."""

    def __init__(self, repository: Path) -> None:
        self.folder = repository / "replies"

    def find(self, key: str) -> bytes | None:
        try:
            return read_whole(f"{self.folder}/{key}")
        except FileNotFoundError:
            return None

    def put(self, key: str, data: bytes, instead_of: str = "") -> None:
        """Store a result whole or not at all, even when killed.

        Args:
            instead_of: Key of a result that is no longer needed. Its file is overwritten: on many
                file systems a new file takes longer than everything else here.
        """
        if instead_of not in ("", key):
            with suppress(FileNotFoundError):
                return self._write_file(key, data, self.folder / instead_of, os.O_WRONLY)
        self.folder.mkdir(exist_ok=True)
        # Two attempts may write at once, so each uses its own name until its file is complete.
        draft = self.folder / f".{key}.{secrets.token_hex(6)}"
        self._write_file(key, data, draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        return None

    def _write_file(self, key: str, data: bytes, draft: Path, flags: int) -> None:
        file = os.open(draft, flags | os.O_CLOEXEC, 0o666)
        try:
            try:
                write_whole(file, data)
                os.ftruncate(file, len(data))
            finally:
                os.close(file)
            draft.rename(self.folder / key)
        except OSError:
            # A partial reply must not fill the disk.
            draft.unlink(missing_ok=True)
            raise

    def check_room(self) -> None:
        self.folder.mkdir(exist_ok=True)
        probe = self.folder / f".room.{secrets.token_hex(6)}"
        try:
            probe.write_bytes(bytes(ROOM_BYTES))
        finally:
            probe.unlink(missing_ok=True)

    def claim(self, key: str) -> bool:
        self.folder.mkdir(exist_ok=True)
        try:
            (self.folder / key).open("xb").close()
        except FileExistsError:
            return False
        return True

    def release(self, key: str) -> None:
        (self.folder / key).unlink(missing_ok=True)

    def remove_others(self, except_key: str) -> None:
        """Remove all but one. Called at a phase end, when no other call is running."""
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if not path.name.startswith(except_key):
                    path.unlink(missing_ok=True)
