"""Takes an opened folder into a tree; what is known to be unchanged is neither read nor written."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field

from activities.checkpoints import folder_io, sharded_tree
from activities.checkpoints.checkout import NOT_OURS, Names
from activities.checkpoints.errors import FilesError, PathRefused, shown
from activities.checkpoints.files import Files
from activities.checkpoints.names import entry_name, from_bytes, to_bytes, unescape
from activities.checkpoints.objects import EMPTY_TREE
from activities.checkpoints.paths import check_size
from activities.checkpoints.records import BLOB, Record
from activities.checkpoints.sharded_tree import EXECUTABLE, FILE, FOLDER, LINK, Node, Raw

FEW = 256
"""Changed entries of one folder up to which they are put into its tree one by one."""

Signature = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class Limits:
    """The most that is taken at once: entries in all, and bytes that are new."""

    entries: int = 300_000
    new_bytes: int = 1 << 30


@dataclass
class Known:
    """What a folder held when it was last looked at: each file's entry, and by what to tell that
    it is still the same (None: only by its content)."""

    tree: bytes = EMPTY_TREE
    files: dict[bytes, tuple[Signature | None, Raw]] = field(default_factory=dict)
    folders: dict[bytes, Known] = field(default_factory=dict)

    def entry(self, name: bytes) -> Raw | None:
        if (known := self.folders.get(name)) is not None:
            return Raw(FOLDER, known.tree)
        return self.files[name][1] if name in self.files else None


def look(files: Files, fd: int, fresh: int) -> Known:
    """What an opened folder holds that was just brought to `files`.

    Args:
        fresh: Nanoseconds of the file system's clock. What changed later than that could change
            again without its times telling.
    """
    return _look(files, fd, bytes.fromhex(files.id), fresh)


def _look(files: Files, fd: int, tree: bytes, fresh: int) -> Known:
    known = Known(tree)
    for entry, raw in sharded_tree.entries(files.store, tree).items():
        name = to_bytes(unescape(entry))
        if raw.mode == FOLDER:
            with folder_io.opened(fd, name) as inner:
                known.folders[name] = _look(files, inner, raw.id, fresh)
            continue
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        known.files[name] = (None if found.st_ctime_ns >= fresh else _signature(found), raw)
    return known


def _signature(found: os.stat_result) -> Signature:
    return found.st_ino, found.st_mode, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@dataclass
class Checkin:
    """One pass over one folder.

    `base` is what stays where something cannot be taken; `notes` has a line for each such thing:
    devices, sockets, FIFOs, files over `base.limit`, paths too long.
    """

    base: Files
    known: Known = field(default_factory=Known)
    limits: Limits | None = None
    notes: list[str] = field(default_factory=list)
    _entries: int = 0
    _new: int = 0

    def take(self, fd: int) -> bytes:
        """The tree of an opened folder. Raises FilesError for more than the limits, OSError."""
        return self._folder(fd, (), self.known)

    def _folder(self, fd: int, at: Names, known: Known | None) -> bytes:
        now: dict[bytes, Raw] = {}
        for name in folder_io.names(fd):
            if not at and name in NOT_OURS:
                continue
            path = (*at, name)
            parts = tuple(from_bytes(part) for part in path)
            try:
                check_size("/".join(parts))
                with folder_io.naming(path):
                    raw: Raw | None = self._item(fd, name, path, known)
            except (PathRefused, _Skipped) as why:
                self.notes.append(f"Left out {shown('/'.join(parts))}: {why}")
                raw = self.base.raw(parts)
            except FileNotFoundError:  # gone since it was listed
                continue
            if raw is not None:
                now[name] = raw
        return self._tree(now, known or Known())

    def _tree(self, now: dict[bytes, Raw], known: Known) -> bytes:
        store = self.base.store
        names = now.keys() | known.files.keys() | known.folders.keys()
        changed = [name for name in names if now.get(name) != known.entry(name)]
        if len(changed) > FEW or not (known.files or known.folders):
            node: Node = {_stored(name): raw for name, raw in now.items()}
            return sharded_tree.build(store, node)
        tree = known.tree
        for name in sorted(changed):
            tree = sharded_tree.put(store, tree, _stored(name), now.get(name))
        return tree

    def _item(self, fd: int, name: bytes, path: Names, known: Known | None) -> Raw:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        self._count()
        was = known.files.get(name) if known else None
        if was is not None and was[0] == _signature(found):
            return was[1]
        if stat.S_ISLNK(found.st_mode):
            return self._blob(LINK, os.readlink(name, dir_fd=fd), was)
        if stat.S_ISDIR(found.st_mode):
            _open_up(fd, name, found.st_mode, 0o700)
            with folder_io.opened(fd, name) as inner:
                below = known.folders.get(name) if known else None
                return Raw(FOLDER, self._folder(inner, path, below))
        if not stat.S_ISREG(found.st_mode):
            raise _Skipped("it is a device, socket or FIFO.")
        if found.st_size > self.base.limit:
            raise _Skipped(f"it is larger than {self.base.limit:,} bytes.")
        _open_up(fd, name, found.st_mode, 0o400)
        with os.fdopen(folder_io.open_file(fd, name), "rb") as file:
            data = file.read(self.base.limit + 1)
        if len(data) > self.base.limit:
            raise _Skipped(f"it is larger than {self.base.limit:,} bytes.")
        return self._blob(EXECUTABLE if found.st_mode & stat.S_IXUSR else FILE, data, was)

    def _blob(self, mode: int, data: bytes, was: tuple[Signature | None, Raw] | None) -> Raw:
        record = Record.create(BLOB, data)
        if was is not None and was[1].id == record.id:
            return Raw(mode, record.id)
        self._new += len(data)
        if self.limits and self._new > self.limits.new_bytes:
            raise FilesError(
                f"More than {self.limits.new_bytes:,} bytes of files are new or changed, which is "
                "more than a checkpoint takes at once. Write less, or elsewhere: /tmp is not kept."
            )
        return Raw(mode, self.base.store.write(record))

    def _count(self) -> None:
        self._entries += 1
        if self.limits and self._entries > self.limits.entries:
            raise FilesError(
                f"There are more than {self.limits.entries:,} files and folders, which is more "
                "than a checkpoint takes. Keep what can be made again elsewhere: /tmp is not kept."
            )


class _Skipped(Exception):
    """Something that no tree can hold."""


def _stored(name: bytes) -> bytes:
    return entry_name(from_bytes(name))


def _open_up(fd: int, name: bytes, mode: int, needed: int) -> None:
    """Modes are not kept but for the executable bit; ours must not be kept from reading."""
    if mode & needed != needed:
        os.chmod(name, stat.S_IMODE(mode) | needed, dir_fd=fd)
