"""Objects waiting for a pack, in files that are only appended to.

A step writes about eighteen objects. As loose files, each would cost a draft and a rename; the
journal writes all of them at once. Three rules keep it consistent among several workers, on one
host or many:

* Every process appends to a file of its own, with a random name that is never reused, and locks
  the file only while it writes. So nobody waits for a writer, frozen or not.
* Under the lock it checks that the file still exists and has the length it left. If not (the file
  was packed, or a write broke off), it begins another: a record after a torn one would be lost.
* A record holds its object's id, the hash of its content. A record that is cut short or garbled
  fails this check when it is read, and counts as missing.
"""

import errno
import fcntl
import os
import secrets
import shutil
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from activities.checkpoints.checkpoint_errors import path_in_errors
from activities.checkpoints.disk_access import fsync_path, write_whole
from activities.checkpoints.journal_records import HEAD, JournalRecord, decode_record, read_records
from activities.checkpoints.packfile import PackWriter

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Values by key, shared by all threads. Callers must not modify a cached value.

    A step makes some hundred lookups, so there is no lock and no LRU order: a full cache is
    cleared.
    """

    def __init__(self, limit: int, weigh: Callable[[V], int]) -> None:
        """`limit`: maximum total weight of all values, as measured by `weigh`."""
        self._values: dict[K, V] = {}
        self._weight = 0
        self._limit = limit
        self._weigh = weigh
        self.get: Callable[[K], V | None] = self._values.get

    def put(self, key: K, value: V) -> V:
        # A race between threads costs at worst a recomputed value and an inexact weight.
        if key not in self._values:
            self._weight += self._weigh(value)
            if self._weight > self._limit:
                self._values.clear()
                self._weight = self._weigh(value)
            self._values[key] = value
        return value

    def clear(self) -> None:
        self._values.clear()
        self._weight = 0


FULL_BYTES = 16 << 20
FULL_OBJECTS = 10_000
"""At this many objects or bytes the journal is packed, to bound disk and memory in a long phase."""
JOURNALS_PER_PROCESS = 1024
"""As many as a worker has running jobs: a journal that is not kept is read again at each step."""
_recent_objects: Cache[tuple[str | None, bytes], bytes] = Cache(32 << 20, len)
"""What this process appended last, by file and id; the next step of the same job reads it."""

_GONE = (errno.ENOENT, errno.ESTALE, errno.EIO)


@dataclass
class _JournalFile:
    """What is known of one file: its length as read, and each record's offset and content size."""

    end: int = 0
    locations: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    def add(self, record: JournalRecord) -> None:
        size = len(record.data)
        self.locations[record.id] = (self.end, size)
        self.end += HEAD.size + size


class Journal:
    """The journal of one repository, for all threads of a process. Get it by `get_journal`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: dict[str, _JournalFile] = {}
        self._own_name: str | None = None
        self._lock = threading.Lock()

    def __contains__(self, oid: bytes) -> bool:
        return self.size(oid) is not None

    def size(self, oid: bytes) -> int | None:
        for file in list(self._files.values()):
            if place := file.locations.get(oid):
                return place[1]
        return None

    def find(self, oid: bytes) -> bytes | None:
        for name, file in list(self._files.items()):
            if place := file.locations.get(oid):
                record = self._read_record(name, *place)
                if record is not None and record.id == oid and record.is_sound:
                    return record.data
                # The file is gone or damaged: forget everything about it until it is read again.
                self._files.pop(name, None)
        return None

    def find_recent(self, oid: bytes) -> bytes | None:
        """Return the content of an object that this process appended recently, or None."""
        # Not from a removed file: an object that was damaged when it was packed is lost.
        return _recent_objects.get((self._own_name, oid)) if self._own_name in self._files else None

    def append(self, records: Iterable[JournalRecord]) -> None:
        """Append objects that are not in the journal, in one write. On OSError none is appended."""
        with self._lock:
            self._forget_gone()
            new = [record for record in records if record.id not in self]
            if not new:
                return
            with self._open_own_file() as (handle, file):
                try:
                    with path_in_errors(self._folder / (self._own_name or "")):
                        write_whole(
                            handle,
                            b"".join(part for record in new for part in record.encoded_parts),
                        )
                except OSError:
                    self._own_name = None
                    with suppress(OSError):
                        os.ftruncate(handle, file.end)
                    raise
                for record in new:
                    file.add(record)
                    _recent_objects.put((self._own_name, record.id), record.data)

    def refresh(self) -> None:
        with self._lock:
            self._forget_gone()
            for name in self._file_names():
                file = self._files.setdefault(name, _JournalFile())
                sound = True
                try:
                    for offset, record in read_records(self._folder / name, file.end):
                        if not record.is_sound:
                            # On a mounted volume the rest may still arrive, so this position is
                            # read again.
                            sound = False
                            continue
                        file.locations[record.id] = (offset, len(record.data))
                        if sound:
                            file.end = offset + HEAD.size + len(record.data)
                except FileNotFoundError:
                    self._files.pop(name, None)

    def reload(self) -> None:
        with self._lock:
            self._files.clear()
            self._own_name = None
        self.refresh()

    def sync(self) -> None:
        for name in self._file_names():
            # A file that is gone was packed, and the pack was flushed before.
            with suppress(FileNotFoundError):
                fsync_path(self._folder / name)
        with suppress(FileNotFoundError):
            fsync_path(self._folder)

    @property
    def is_full(self) -> bool:
        files = list(self._files.values())
        objects = sum(len(file.locations) for file in files)
        return objects >= FULL_OBJECTS or sum(file.end for file in files) >= FULL_BYTES

    def _file_names(self) -> list[str]:
        return [path.name for path in journal_files(self._folder)]

    def _forget_gone(self) -> None:
        for name in list(self._files):
            if not (self._folder / name).exists():
                self._files.pop(name, None)

    def _read_record(self, name: str, offset: int, length: int) -> JournalRecord | None:
        try:
            handle = os.open(f"{self._folder}/{name}", os.O_RDONLY | os.O_CLOEXEC)
            try:
                with path_in_errors(self._folder / name):
                    return decode_record(os.pread(handle, HEAD.size + length, offset))
            finally:
                os.close(handle)
        except OSError as error:
            if error.errno not in _GONE:
                raise
            # A mounted volume may report this for a removed file; for any other file the disk is
            # bad.
            if error.errno == errno.EIO and (self._folder / name).exists():
                raise
            return None

    @contextmanager
    def _open_own_file(self) -> Iterator[tuple[int, _JournalFile]]:
        """Lock and return this process's file if it is as the process left it, else a new one."""
        while True:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
            file = self._files.get(self._own_name or "")
            if self._own_name is None or file is None:
                self._folder.mkdir(exist_ok=True)
                self._own_name = f"{secrets.token_hex(8)}.log"
                file = self._files[self._own_name] = _JournalFile()
                flags |= os.O_CREAT | os.O_EXCL
            path = self._folder / self._own_name
            try:
                handle = os.open(path, flags, 0o666)
            except FileNotFoundError:
                if flags & os.O_CREAT:
                    raise
                self._files.pop(self._own_name, None)
                continue
            try:
                if _try_lock_journal(handle) and _is_same_journal(handle, path, file.end):
                    yield handle, file
                    return
            finally:
                os.close(handle)
            self._own_name = None


def _try_lock_journal(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_same_journal(handle: int, path: Path, size: int) -> bool:
    """Whether the opened file is still the one with that name, and has that size."""
    status = os.fstat(handle)
    try:
        return os.path.samestat(status, path.stat()) and status.st_size == size
    except FileNotFoundError:
        return False


@contextmanager
def locked_journal_files(folder: Path) -> Iterator[list[Path]]:
    """Yield the files of a journal flushed and locked, but for those that others append to."""
    handles: list[int] = []
    try:
        files: list[Path] = []
        for path in journal_files(folder):
            with suppress(FileNotFoundError):
                handles.append(os.open(path, os.O_RDWR | os.O_CLOEXEC))
                if _try_lock_journal(handles[-1]):
                    files.append(path)
                with path_in_errors(path):
                    os.fsync(handles[-1])
        if handles:
            fsync_path(folder)
        yield files
    finally:
        for handle in handles:
            os.close(handle)


def journal_files(folder: Path) -> list[Path]:
    """List the files of a journal; unlike `glob`, raises OSError for an unreadable folder."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix == ".log")
    except FileNotFoundError:
        return []


_journals: OrderedDict[Path, Journal] = OrderedDict()
_journals_lock = threading.Lock()


def get_journal(repository: Path) -> Journal:
    """Return this process's view of a repository's journal; the views used last are kept."""
    with _journals_lock:
        journal = _journals.setdefault(repository, Journal(repository / "journal"))
        _journals.move_to_end(repository)
        while len(_journals) > JOURNALS_PER_PROCESS:
            # Two views of one journal do not interfere: each writes to a file of its own.
            _journals.popitem(last=False)
        return journal


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
        """Stage what was appended since; objects not in the returned folder are in the packs."""
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
