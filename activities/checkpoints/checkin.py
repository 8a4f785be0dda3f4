"""Import an opened folder into a tree; files known to be unchanged are not read or written."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass, field

from activities.checkpoints import entry_names, folder_io, sharded_tree
from activities.checkpoints.checkout import EXCLUDED_NAMES, NameParts
from activities.checkpoints.checkpoint_errors import FilesError, PathRefused, quote_path_in_error
from activities.checkpoints.journal_records import BLOB, JournalRecord
from activities.checkpoints.object_store import EMPTY_TREE
from activities.checkpoints.sharded_tree import EXECUTABLE, FILE, FOLDER, LINK, Node, TreeEntry
from activities.checkpoints.tree_files import Files

MAX_SINGLE_CHANGES = 256
"""Up to this many changed entries, a folder's tree is patched; beyond it, it is rebuilt."""

FileSignature = tuple[int, int, int, int, int]


@dataclass(frozen=True)
class CheckinLimits:
    entries: int = 300_000
    new_bytes: int = 1 << 30


@dataclass
class CheckinState:
    """A folder's content at the last check: each file's tree entry and signature.

    A signature of None means the file must be compared by content.
    """

    tree: bytes = EMPTY_TREE
    files: dict[bytes, tuple[FileSignature | None, TreeEntry]] = field(default_factory=dict)
    folders: dict[bytes, CheckinState] = field(default_factory=dict)

    def entry(self, name: bytes) -> TreeEntry | None:
        if (known := self.folders.get(name)) is not None:
            return TreeEntry(FOLDER, known.tree)
        return self.files[name][1] if name in self.files else None


def read_checkin_state(files: Files, fd: int, fresh: int) -> CheckinState:
    """Return the state of an opened folder that was just updated to `files`.

    Args:
        fresh: File-system time in nanoseconds. Files changed at or after it get no signature,
            since they could change again without a visible change of their times.
    """
    return _read_checkin_state(files, fd, bytes.fromhex(files.id), fresh)


def _read_checkin_state(files: Files, fd: int, tree: bytes, fresh: int) -> CheckinState:
    known = CheckinState(tree)
    for entry, raw in sharded_tree.list_tree_entries(files.store, tree).items():
        name = entry_names.name_to_bytes(entry_names.unescape_name(entry))
        if raw.mode == FOLDER:
            with folder_io.open_folder(fd, name) as inner:
                known.folders[name] = _read_checkin_state(files, inner, raw.id, fresh)
            continue
        file_stat = os.stat(name, dir_fd=fd, follow_symlinks=False)
        known.files[name] = (
            None if file_stat.st_ctime_ns >= fresh else _file_signature(file_stat),
            raw,
        )
    return known


def _file_signature(file_stat: os.stat_result) -> FileSignature:
    return (
        file_stat.st_ino,
        file_stat.st_mode,
        file_stat.st_size,
        file_stat.st_mtime_ns,
        file_stat.st_ctime_ns,
    )


@dataclass
class Checkin:
    """One pass over one folder.

    Entries that cannot be imported (devices, sockets, FIFOs, files over `base.limit`, overlong
    paths) keep their entry from `base`, and `notes` gets one line for each.
    """

    base: Files
    known: CheckinState = field(default_factory=CheckinState)
    limits: CheckinLimits | None = None
    notes: list[str] = field(default_factory=list)
    clean: Callable[[bytes], bytes] | None = None
    """Returns what is stored of a new or changed file's content; git's own files are left alone."""
    cleaned: list[str] = field(default_factory=list)
    """Paths of the files whose content it changed."""
    _entries: int = 0
    _new: int = 0

    def import_folder(self, fd: int) -> bytes:
        """Return the tree id of an opened folder. Raises FilesError above the limits, OSError."""
        return self._import_folder(fd, (), self.known)

    def _import_folder(self, fd: int, folder_path: NameParts, known: CheckinState | None) -> bytes:
        now: dict[bytes, TreeEntry] = {}
        for name in folder_io.list_folder_names(fd):
            if not folder_path and name in EXCLUDED_NAMES:
                continue
            path = (*folder_path, name)
            parts = tuple(entry_names.name_from_bytes(part) for part in path)
            try:
                entry_names.check_path_size("/".join(parts))
                with folder_io.full_path_in_io_errors(path):
                    raw: TreeEntry | None = self._import_entry(fd, name, path, known)
            except PathRefused as error:
                self.notes.append(f"Left out {quote_path_in_error('/'.join(parts))}: {error}")
                raw = self.base.tree_entry(parts)
            except FileNotFoundError:  # gone since it was listed
                continue
            if raw is not None:
                now[name] = raw
        return self._build_tree(now, known or CheckinState())

    def _build_tree(self, now: dict[bytes, TreeEntry], known: CheckinState) -> bytes:
        store = self.base.store
        names = now.keys() | known.files.keys() | known.folders.keys()
        changed = [name for name in names if now.get(name) != known.entry(name)]
        if len(changed) > MAX_SINGLE_CHANGES or not (known.files or known.folders):
            node: Node = {entry_names.stored_entry_name(name): raw for name, raw in now.items()}
            return sharded_tree.build_tree(store, node)
        tree = known.tree
        for name in sorted(changed):
            tree = sharded_tree.put_sharded_tree_entry(
                store, tree, entry_names.stored_entry_name(name), now.get(name)
            )
        return tree

    def _import_entry(
        self, fd: int, name: bytes, path: NameParts, known: CheckinState | None
    ) -> TreeEntry:
        file_stat = os.stat(name, dir_fd=fd, follow_symlinks=False)
        self._count_entry()
        was = known.files.get(name) if known else None
        if was is not None and was[0] == _file_signature(file_stat):
            return was[1]
        if stat.S_ISLNK(file_stat.st_mode):
            return self._write_blob(LINK, os.readlink(name, dir_fd=fd), was)
        if stat.S_ISDIR(file_stat.st_mode):
            _grant_checkin_access(fd, name, file_stat.st_mode, 0o700)
            with folder_io.open_folder(fd, name) as inner:
                below = known.folders.get(name) if known else None
                return TreeEntry(FOLDER, self._import_folder(inner, path, below))
        if not stat.S_ISREG(file_stat.st_mode):
            raise PathRefused("it is a device, socket or FIFO.")
        if file_stat.st_size > self.base.limit:
            raise PathRefused(f"it is larger than {self.base.limit:,} bytes.")
        _grant_checkin_access(fd, name, file_stat.st_mode, 0o400)
        with os.fdopen(folder_io.open_file(fd, name), "rb") as file:
            data = file.read(self.base.limit + 1)
        if len(data) > self.base.limit:
            raise PathRefused(f"it is larger than {self.base.limit:,} bytes.")
        data = self._clean_data(data, path, was)
        return self._write_blob(EXECUTABLE if file_stat.st_mode & stat.S_IXUSR else FILE, data, was)

    def _clean_data(
        self, data: bytes, path: NameParts, was: tuple[FileSignature | None, TreeEntry] | None
    ) -> bytes:
        """Clean content before it is stored: objects stay, whether or not a tree names them."""
        if self.clean is None or b".git" in path:
            return data
        if was is not None and was[1].id == JournalRecord.create(BLOB, data).id:
            return data
        clean = self.clean(data)
        if clean != data:
            self.cleaned.append("/".join(entry_names.name_from_bytes(part) for part in path))
        return clean

    def _write_blob(
        self, mode: int, data: bytes, was: tuple[FileSignature | None, TreeEntry] | None
    ) -> TreeEntry:
        record = JournalRecord.create(BLOB, data)
        if was is not None and was[1].id == record.id:
            return TreeEntry(mode, record.id)
        self._new += len(data)
        if self.limits and self._new > self.limits.new_bytes:
            raise FilesError(
                f"More than {self.limits.new_bytes:,} bytes of files are new or changed, which is "
                "more than a checkpoint takes at once. Write less, or elsewhere: /tmp is not kept."
            )
        return TreeEntry(mode, self.base.store.write(record))

    def _count_entry(self) -> None:
        self._entries += 1
        if self.limits and self._entries > self.limits.entries:
            raise FilesError(
                f"There are more than {self.limits.entries:,} files and folders, which is more "
                "than a checkpoint takes. Keep what can be made again elsewhere: /tmp is not kept."
            )


def _grant_checkin_access(fd: int, name: bytes, mode: int, needed: int) -> None:
    """Add the mode bits the worker needs; trees store no mode other than the executable bit."""
    if mode & needed != needed:
        os.chmod(name, stat.S_IMODE(mode) | needed, dir_fd=fd)
