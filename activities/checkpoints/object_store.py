"""Read and write git objects: new ones go to the journal, old ones are in packs.

Ids are 20 raw bytes here; hex is used only at the edges.
"""

import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2

from activities.checkpoints.checkpoint_errors import CheckpointMissing
from activities.checkpoints.journal import Journal, get_journal
from activities.checkpoints.journal_records import BLOB, TREE, JournalRecord
from protocol.short_text import one_line

EMPTY_TREE = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
MAX_PENDING_BYTES = 1 << 20
# Each object is checked against its id here. libgit2's check also guards against crafted collisions
# and takes four times as long.
pygit2.settings.enable_strict_hash_verification(False)
_ABSENT = (KeyError, pygit2.GitError, OSError)


class ObjectStore:
    """The objects of one repository. For one thread.

    Written objects stay in memory until `flush`, which a commit calls, so that a step's objects are
    one write. Large objects are written at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal: Journal = get_journal(path)
        self._pending: dict[bytes, JournalRecord] = {}
        self._pending_bytes = 0

    @cached_property
    def git(self) -> pygit2.Repository:
        """The pygit2 repository, for packs and refs. Opened on first use, which most steps do not
        need.

        Raises CheckpointMissing if there is no repository.
        """
        return _open_git_objects(self.path)

    def read(self, oid: bytes) -> bytes:
        if (record := self._pending.get(oid)) is not None:
            return record.data
        if (data := self.journal.find_recent(oid)) is not None:
            return data
        return self.read_stored(oid)

    def read_stored(self, oid: bytes) -> bytes:
        """Return an object's content from disk. Raises CheckpointMissing, OSError.

        Objects move from the journal into packs, never back, and are in the pack before they leave
        the journal. So searching the journal first finds them even while they move.
        """
        if (data := self.journal.find(oid)) is not None:
            return data
        try:
            return read_sound_object(self.git, oid)
        except _ABSENT:
            self.journal.refresh()
        if (data := self.journal.find(oid)) is not None:
            return data
        # libgit2 finds new packs by itself. A fresh handle also forgets packs that were merged
        # away.
        try:
            self.git = pygit2.Repository(str(self.path))
            return read_sound_object(self.git, oid)
        except _ABSENT:
            pass
        if (data := self._sound_copy(oid)) is not None:
            return data
        self._require_readable()
        raise CheckpointMissing(oid.hex())

    def _require_readable(self) -> None:
        """Raise OSError if a pack, which libgit2 would skip silently, cannot be opened."""
        with suppress(FileNotFoundError):
            for path in (self.path / "objects" / "pack").iterdir():
                with suppress(FileNotFoundError):
                    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))

    def _sound_copy(self, oid: bytes) -> bytes | None:
        """Return an undamaged copy of the object from any pack, or None.

        An object that was damaged and written again is in two packs, and libgit2 fails at the first
        one it reads. So each pack is searched alone. Raises OSError if the disk is full, since then
        the object may exist and was not searched for.
        """
        objects = self.path / "objects"
        if not pygit2.OdbBackendPack(str(objects)).exists(pygit2.Oid(raw=oid)):
            return None
        for index in (objects / "pack").glob("*.idx"):
            with TemporaryDirectory() as alone:
                place = Path(alone, "pack")
                place.mkdir()
                for file in (index, index.with_suffix(".pack")):
                    (place / file.name).symlink_to(file.absolute())
                reader = pygit2.Odb()
                with suppress(*_ABSENT):
                    reader.add_backend(pygit2.OdbBackendPack(alone), 1)
                    return read_sound_object(reader, oid)
        return None

    def size(self, oid: bytes) -> int:
        if (record := self._pending.get(oid)) is not None:
            return len(record.data)
        if (size := self.journal.size(oid)) is not None:
            return size
        try:
            return int(self.git.odb.read_header(pygit2.Oid(raw=oid))[1])
        except _ABSENT:
            return len(self.read(oid))

    def require(self, oid: bytes) -> None:
        if oid not in self._pending and oid not in self.journal:
            self.read(oid)

    def write_blob(self, data: bytes) -> bytes:
        return self.write(JournalRecord.create(BLOB, data))

    def write_tree(self, data: bytes) -> bytes:
        return self.write(JournalRecord.create(TREE, data))

    def write(self, record: JournalRecord) -> bytes:
        if record.id not in self._pending:
            self._pending[record.id] = record
            self._pending_bytes += len(record.data)
            if self._pending_bytes > MAX_PENDING_BYTES:
                self.flush()
        return record.id

    def flush(self) -> None:
        records = list(self._pending.values())
        # Drop them even if they cannot be stored: the step that made them fails, and makes them
        # again.
        self._pending.clear()
        self._pending_bytes = 0
        self.journal.append(records)

    def reload(self) -> None:
        self.journal.reload()
        self.git = _open_git_objects(self.path)


def read_sound_object(reader: pygit2.Repository | pygit2.Odb, oid: bytes) -> bytes:
    """Return the content of a stored object. Raises KeyError or pygit2.GitError."""
    kind, data = reader.read(pygit2.Oid(raw=oid))
    if not JournalRecord(int(kind), oid, data).is_sound:
        raise KeyError(oid.hex())
    return data


def _open_git_objects(path: Path) -> pygit2.Repository:
    try:
        return pygit2.Repository(str(path))
    except (pygit2.GitError, KeyError) as error:
        if not path.is_dir():
            raise CheckpointMissing("", f"There is no checkpoint repository at {path}.") from None
        raise CheckpointMissing(
            "",
            f"The checkpoint repository at {path} cannot be opened ({one_line(str(error), 200)}). "
            "Copy the files HEAD and config of another job's into it, they are all alike; if that "
            "does not help, put it back from a backup.",
        ) from None
