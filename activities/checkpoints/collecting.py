"""Takes a workspace folder, as a person left it, into a tree."""

import os
import stat
from dataclasses import dataclass, field

from activities.checkpoints import folder_io, folders
from activities.checkpoints.bringing import NOT_OURS, Names
from activities.checkpoints.diff import Change, diff
from activities.checkpoints.errors import PathRefused, shown
from activities.checkpoints.files import Entry, Files
from activities.checkpoints.folders import EXECUTABLE, FILE, FOLDER, LINK, Node, Raw
from activities.checkpoints.names import escape, from_bytes, to_bytes
from activities.checkpoints.objects import Store
from activities.checkpoints.paths import check_size
from activities.checkpoints.projection import projecting
from activities.checkpoints.repository import Checkpoints
from activities.checkpoints.root import Root


def collect(checkpoints: Checkpoints, root: Root, job: str, base: Files) -> tuple[Files, list[str]]:
    """`base`, the job's newest files, with what a person changed in `<root>/<job>/`.

    A folder that lags behind `base` takes nothing back: only what differs from what was projected
    there counts as a change. Links are kept as links; executable bits, empty folders and nested
    repositories come along; `errors/` does not. Returns the files and a line for each thing left
    out: devices, sockets, FIFOs, files over `base.limit`, paths too long; there `base` stays.
    Raises OSError, CheckpointMissing.
    """
    with projecting(checkpoints) as record:
        if not root.workspace(job).is_dir():
            return base, [f"There is no folder {root.workspace(job)}; nothing was taken from it."]
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(root.workspace(job), flags)
        try:
            taking = _Taking(base.store, base)
            taken = Files(base.store, taking.folder(fd, ()).hex(), limit=base.limit)
        finally:
            os.close(fd)
    trees = [record.tree, *record.started] if record else []
    known = [Files(base.store, tree) for tree in dict.fromkeys(trees) if tree]
    if known != [base]:
        taken = _changes_on(base, taken, known)
    return taken, taking.notes


@dataclass
class _Taking:
    store: Store
    base: Files
    notes: list[str] = field(default_factory=list)

    def folder(self, fd: int, at: Names) -> bytes:
        """The tree of an opened folder."""
        node: Node = {}
        for name in folder_io.names(fd):
            if not at and name in NOT_OURS:
                continue
            path = (*at, name)
            parts = tuple(from_bytes(part) for part in path)
            try:
                check_size("/".join(parts))
                raw: Raw | None = self._item(fd, name, path)
            except (PathRefused, _Skipped) as why:
                self.notes.append(f"Left out {shown('/'.join(parts))}: {why}")
                raw = self.base.raw(parts)
            except FileNotFoundError:  # gone since it was listed
                continue
            if raw is not None:
                node[to_bytes(escape(parts[-1]))] = raw
        return folders.build(self.store, node)

    def _item(self, fd: int, name: bytes, path: Names) -> Raw:
        mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            target = os.readlink(name, dir_fd=fd)
            return Raw(LINK, self.store.write_blob(target))
        if stat.S_ISDIR(mode):
            with folder_io.opened(fd, name) as inner:
                return Raw(FOLDER, self.folder(inner, path))
        if not stat.S_ISREG(mode):
            raise _Skipped("it is a device, socket or FIFO.")
        with os.fdopen(folder_io.open_file(fd, name), "rb") as file:
            data = file.read(self.base.limit + 1)
        if len(data) > self.base.limit:
            raise _Skipped(f"it is larger than {self.base.limit:,} bytes.")
        kind = EXECUTABLE if mode & stat.S_IXUSR else FILE
        return Raw(kind, self.store.write_blob(data))


class _Skipped(Exception):
    """Something that no tree can hold."""


def _changes_on(base: Files, taken: Files, known: list[Files]) -> Files:
    """`base` with what in `taken` is in none of the trees that we ourselves may have put there."""
    changes = [
        change
        for change in diff(base, taken)
        if not any(_same(tree, change) for tree in known) and (known or change.new)
    ]
    result = base
    for change in changes:
        if change.new is None:
            result = _without(result, taken, change.path)
    for change in changes:
        if change.new is not None:
            result = _with(result, change.path, change.new)
    return result


def _same(tree: Files, change: Change) -> bool:
    raw = tree.raw(tuple(change.path.split("/")))
    there = tree.entry_of(tuple(change.path.split("/")), raw) if raw else None
    return there == change.new


def _without(files: Files, taken: Files, path: str) -> Files:
    """`files` without what lies at the path, and without the folders that went with it."""
    parts = tuple(path.split("/"))
    files = files.with_raw(parts, None)
    while (parts := parts[:-1]) and taken.raw(parts) is None:
        present = files.raw(parts)
        if present is None or present.mode != FOLDER or folders.entries(files.store, present.id):
            break
        files = files.with_raw(parts, None)
    return files


def _with(files: Files, path: str, entry: Entry) -> Files:
    """`files` with that entry; a file that lies where a folder is needed gives way."""
    parts = tuple(path.split("/"))
    mode = {"folder": FOLDER, "link": LINK, "file": EXECUTABLE if entry.executable else FILE}
    for depth in range(1, len(parts)):
        present = files.raw(parts[:depth])
        if present is not None and present.mode != FOLDER:
            files = files.with_raw(parts[:depth], None)
    return files.with_raw(parts, Raw(mode[entry.kind], bytes.fromhex(entry.id)))
