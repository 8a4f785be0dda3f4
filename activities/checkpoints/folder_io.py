"""File operations on opened folders: no name is ever looked up through a link.

Functions take a folder's descriptor and one file name (bytes) in it, so that a link swapped in
between two calls cannot lead out of the workspace.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pygit2

from activities.checkpoints.disk_access import write_whole
from activities.checkpoints.object_store import ObjectStore
from activities.checkpoints.sharded_tree import EXECUTABLE, FOLDER, LINK, TreeEntry

CHUNK = 1 << 20
NOT_OF_CONTENT = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EIO)
"""Out of handles or memory, or a bad disk: errors that say nothing about a file's content."""


@contextmanager
def open_folder(fd: int | None, name: bytes | Path) -> Iterator[int]:
    """Yield a descriptor of the folder `name` in `fd`. Raises OSError if it is a link or no folder.

    For a path without `fd`, only the last name is checked for being a link.
    """
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        inner = os.open(name, flags, dir_fd=fd)
    except NotADirectoryError as error:
        why = "A link or a file is in the place of a folder"
        raise NotADirectoryError(error.errno, why, error.filename) from error
    try:
        yield inner
    finally:
        os.close(inner)


@contextmanager
def full_path_in_io_errors(path: Sequence[bytes]) -> Iterator[None]:
    """Add the full path to permission and I/O errors.

    Calls on descriptors report only the last name, or none.
    """
    try:
        yield
    except OSError as error:
        needs_path = isinstance(error, PermissionError) or error.errno == errno.EIO
        if needs_path and not isinstance(error.filename, str):  # str: an inner call has added it
            where = os.fsdecode(b"/".join(path))
            raise OSError(error.errno, error.strerror, where) from error
        raise


def folder_entry_status(fd: int, name: bytes) -> os.stat_result | None:
    """Return the status of the entry without following a link, or None if it is missing."""
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def list_folder_names(fd: int) -> list[bytes]:
    return sorted(os.fsencode(name) for name in os.listdir(fd))


def open_file(fd: int, name: bytes) -> int:
    """Open a regular file. Raises OSError for anything else; never blocks on a FIFO."""
    inner = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    if stat.S_ISREG(os.fstat(inner).st_mode):
        return inner
    os.close(inner)
    raise OSError(f"{os.fsdecode(name)} is no longer a regular file")


def folder_entry_has_content(store: ObjectStore, fd: int, name: bytes, raw: TreeEntry) -> bool:
    """Whether the file or link on disk has the entry's content; ignores the executable bit."""
    entry_stat = folder_entry_status(fd, name)
    if entry_stat is None or raw.mode == FOLDER:
        return False
    if stat.S_ISLNK(entry_stat.st_mode):
        if raw.mode != LINK:
            return False
        target = os.readlink(name, dir_fd=fd)
        return pygit2.hash(target).raw == raw.id
    if not stat.S_ISREG(entry_stat.st_mode) or raw.mode == LINK:
        return False
    return entry_stat.st_size == store.size(raw.id) and _file_id(fd, name) == raw.id


def set_executable(fd: int, name: bytes, executable: bool) -> None:
    """Set a regular file's executable bits for everyone who may read it, or clear them all."""
    inner = open_file(fd, name)
    try:
        mode = stat.S_IMODE(os.fstat(inner).st_mode)
        if bool(mode & stat.S_IXUSR) != executable:
            readers = (mode & 0o444) >> 2
            os.fchmod(inner, mode | readers if executable else mode & ~0o111)
    finally:
        os.close(inner)


def create_folder_entry(store: ObjectStore, raw: TreeEntry, fd: int, name: bytes) -> None:
    """Create the file or link of an entry; `name` must be free."""
    data = store.read(raw.id)
    if raw.mode == LINK:
        os.symlink(data, name, dir_fd=fd)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    inner = os.open(name, flags, 0o777 if raw.mode == EXECUTABLE else 0o666, dir_fd=fd)
    try:
        write_whole(inner, data)
    finally:
        os.close(inner)


def _file_id(fd: int, name: bytes) -> bytes | None:
    """Return the blob id of a regular file, None if it cannot be opened. Reads in chunks."""
    try:
        inner = open_file(fd, name)
    except OSError as error:
        if error.errno in NOT_OF_CONTENT:
            raise
        return None
    with os.fdopen(inner, "rb", buffering=0) as file:
        digest = hashlib.sha1(b"blob %d\0" % os.fstat(inner).st_size)
        while piece := file.read(CHUNK):
            digest.update(piece)
    return digest.digest()
