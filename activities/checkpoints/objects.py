"""Reading and writing git objects: new ones go to the journal, old ones lie in packs.

Ids are 20 raw bytes here; hex only at the edges.
"""

import os
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2

from activities.checkpoints.errors import CheckpointMissing
from activities.checkpoints.journal import Journal, get_journal
from activities.checkpoints.records import BLOB, TREE, JournalRecord
from protocol.text import one_line

EMPTY_TREE = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
MAX_PENDING_BYTES = 1 << 20
# Each object is compared with its id here: libgit2 would guard against made-up collisions as well,
# which takes four times as long.
pygit2.settings.enable_strict_hash_verification(False)
_ABSENT = (KeyError, pygit2.GitError, OSError)


class ObjectStore:
    """The objects of one repository. For one thread.

    What is written waits in memory until `flush`, which a commit does, so that a step's objects
    are one write; what is large is written at once.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal: Journal = get_journal(path)
        self._pending: dict[bytes, JournalRecord] = {}
        self._pending_bytes = 0

    @cached_property
    def git(self) -> pygit2.Repository:
        """For packs and refs; opened when it is needed, which most steps do not.

        Raises CheckpointMissing if there is no repository.
        """
        return _open_repository(self.path)

    def read(self, oid: bytes) -> bytes:
        """The content of one object. Raises CheckpointMissing, OSError."""
        if (record := self._pending.get(oid)) is not None:
            return record.data
        if (data := self.journal.find_recent(oid)) is not None:
            return data
        return self.read_stored(oid)

    def read_stored(self, oid: bytes) -> bytes:
        """The same, but of one that is on the disk. Raises CheckpointMissing, OSError.

        Objects move from the journal into packs, never back, and are in the pack before they
        leave the journal: looked for in this order they are found whatever goes on meanwhile.
        """
        if (data := self.journal.find(oid)) is not None:
            return data
        try:
            return read_sound_object(self.git, oid)
        except _ABSENT:
            self.journal.refresh()
        if (data := self.journal.find(oid)) is not None:
            return data
        # libgit2 looks for new packs by itself; a fresh handle also forgets packs that were
        # consolidated away under this one.
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
        """Raises OSError for a pack that cannot be opened: what is missed may well be in it, and
        libgit2 passes it over without a word."""
        with suppress(FileNotFoundError):
            for path in (self.path / "objects" / "pack").iterdir():
                with suppress(FileNotFoundError):
                    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))

    def _sound_copy(self, oid: bytes) -> bytes | None:
        """What one of the packs holds sound, or None.

        An object that was damaged and made again lies in two packs, and libgit2 gives up after
        the first that it looks into; so each is looked into alone. Raises OSError where there is
        no room for that: what was not looked for is not missing.
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
        """The size of one object in bytes. Raises CheckpointMissing, OSError."""
        if (record := self._pending.get(oid)) is not None:
            return len(record.data)
        if (size := self.journal.size(oid)) is not None:
            return size
        try:
            return int(self.git.odb.read_header(pygit2.Oid(raw=oid))[1])
        except _ABSENT:
            return len(self.read(oid))

    def require(self, oid: bytes) -> None:
        """Raises CheckpointMissing for an object that cannot be found."""
        if oid not in self._pending and oid not in self.journal:
            self.read(oid)

    def write_blob(self, data: bytes) -> bytes:
        """Stores a blob and returns its id."""
        return self.write(JournalRecord.create(BLOB, data))

    def write_tree(self, data: bytes) -> bytes:
        """Stores a tree in git's own form and returns its id."""
        return self.write(JournalRecord.create(TREE, data))

    def write(self, record: JournalRecord) -> bytes:
        """Stores an object and returns its id. Raises OSError."""
        if record.id not in self._pending:
            self._pending[record.id] = record
            self._pending_bytes += len(record.data)
            if self._pending_bytes > MAX_PENDING_BYTES:
                self.flush()
        return record.id

    def flush(self) -> None:
        """Appends what was written to the journal. Raises OSError."""
        records = list(self._pending.values())
        # Also what cannot be stored goes: the step that made it fails and makes it again.
        self._pending.clear()
        self._pending_bytes = 0
        self.journal.append(records)

    def reload(self) -> None:
        """Trust nothing that was read before: for whoever asks what is really there.

        Raises CheckpointMissing if the repository is gone, OSError.
        """
        self.journal.reload()
        self.git = _open_repository(self.path)


def read_sound_object(reader: pygit2.Repository | pygit2.Odb, oid: bytes) -> bytes:
    """The content of an object that git stores. Raises KeyError, pygit2.GitError: there is none, or
    it is damaged."""
    kind, data = reader.read(pygit2.Oid(raw=oid))
    if not JournalRecord(int(kind), oid, data).is_sound:
        raise KeyError(oid.hex())
    return data


def _open_repository(path: Path) -> pygit2.Repository:
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
