"""Brings a real folder up to a tree; what is not known to be ours is moved away, never deleted."""

import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from activities.checkpoints import folder_io, sharded_tree
from activities.checkpoints.entry_names import from_bytes, to_bytes, unescape_name
from activities.checkpoints.objects import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import EXECUTABLE, FOLDER, LINK, TreeEntry

# At the top of a workspace and in no checkpoint.
EXCLUDED_NAMES = frozenset({b"errors"})

NameParts = tuple[bytes, ...]


@dataclass
class Checkout:
    """One pass over one workspace folder.

    `drafts` is a folder of ours on the same file system in which files are made before they get
    their place; `lost_folder` is where strays go, made when needed. `moved_paths` collects what
    was moved there, as paths below `lost_folder`.
    """

    store: ObjectStore
    drafts: int
    lost_folder: Path
    moved_paths: list[str] = field(default_factory=list)
    _draft: Iterator[int] = field(default_factory=itertools.count)

    def update_folder(
        self, fd: int, folder_path: NameParts, known: list[bytes], target: bytes, *, scan: bool
    ) -> None:
        """Brings the opened folder `fd`, whose path is `folder_path`, to the tree `target`.

        `known`: trees that we may have put there ourselves, so that their content is no person's.
        Without `scan` only the entries that differ between `known[0]` and `target` are compared.
        """
        if not scan:
            differing = {
                _on_disk(name): (old, new)
                for name, old, new in sharded_tree.diff_entries(self.store, known[0], target)
            }
            for name, (old, new) in sorted(differing.items()):
                with folder_io.entry_path_in_errors((*folder_path, name)):
                    self._update_entry(fd, folder_path, name, [old] if old else [], new, scan=False)
            return
        target_entries = {
            _on_disk(name): raw
            for name, raw in sharded_tree.list_entries(self.store, target).items()
        }
        known_entries = [
            {
                _on_disk(name): raw
                for name, raw in sharded_tree.list_entries(self.store, tree).items()
            }
            for tree in known
        ]
        for name in sorted(target_entries.keys() | set(folder_io.list_names(fd))):
            have = [tree[name] for tree in known_entries if name in tree]
            with folder_io.entry_path_in_errors((*folder_path, name)):
                self._update_entry(fd, folder_path, name, have, target_entries.get(name), scan=True)

    def _update_entry(
        self,
        fd: int,
        folder_path: NameParts,
        name: bytes,
        known: list[TreeEntry],
        target: TreeEntry | None,
        *,
        scan: bool,
    ) -> None:
        if not folder_path and name in EXCLUDED_NAMES:
            return
        there = folder_io.entry_status(fd, name)
        is_folder = there is not None and stat.S_ISDIR(there.st_mode)
        if target is not None and target.mode == FOLDER:
            if not is_folder:
                if there is not None:
                    self._free_name(fd, folder_path, name, known)
                os.mkdir(name, dir_fd=fd)
            inside = [raw.id for raw in known if raw.mode == FOLDER]
            with folder_io.open_folder(fd, name) as inner:
                # A folder that is new here, or was missing, is filled from end to end.
                full_scan = scan or not is_folder or not inside
                self.update_folder(inner, (*folder_path, name), inside, target.id, scan=full_scan)
            return
        if is_folder:
            self._remove_folder(fd, folder_path, name, known)
        elif there is not None:
            if target is not None and folder_io.has_content(self.store, fd, name, target):
                if target.mode != LINK:
                    folder_io.set_executable(fd, name, target.mode == EXECUTABLE)
                return
            if target is None:
                self._free_name(fd, folder_path, name, known)
            elif not self._is_ours(fd, name, known):
                self._move_to_lost(fd, folder_path, name)
        if target is not None:
            # Under its name only when complete; a rename follows no link that appeared meanwhile.
            draft, old = self._draft_name(), self._draft_name()
            folder_io.create_entry(self.store, target, self.drafts, draft)
            # Where the file system has no second names, what is written until now is lost.
            with suppress(OSError):
                os.link(name, old, src_dir_fd=fd, dst_dir_fd=self.drafts, follow_symlinks=False)
            os.rename(draft, name, src_dir_fd=self.drafts, dst_dir_fd=fd)
            self._delete_old(folder_path, name, old, known)

    def _is_ours(self, fd: int, name: bytes, known: list[TreeEntry]) -> bool:
        return any(folder_io.has_content(self.store, fd, name, raw) for raw in known)

    def _free_name(
        self, fd: int, folder_path: NameParts, name: bytes, known: list[TreeEntry]
    ) -> None:
        """Frees the name of a file, link or device."""
        if self._is_ours(fd, name, known):
            old = self._draft_name()
            os.rename(name, old, src_dir_fd=fd, dst_dir_fd=self.drafts)
            self._delete_old(folder_path, name, old, known)
        else:
            self._move_to_lost(fd, folder_path, name)

    def _delete_old(
        self, folder_path: NameParts, name: bytes, old: bytes, known: list[TreeEntry]
    ) -> None:
        """Deletes what was taken from its place, unless a person wrote to it since it was looked
        at."""
        if self._is_ours(self.drafts, old, known):
            os.unlink(old, dir_fd=self.drafts)
        elif folder_io.entry_status(self.drafts, old) is not None:
            self._move_to_lost(self.drafts, folder_path, name, old)

    def _draft_name(self) -> bytes:
        """A free name among the drafts."""
        return b"%d" % next(self._draft)

    def _remove_folder(
        self, fd: int, folder_path: NameParts, name: bytes, known: list[TreeEntry]
    ) -> None:
        inside = [raw.id for raw in known if raw.mode == FOLDER]
        if not inside:
            self._move_to_lost(fd, folder_path, name)
            return
        with folder_io.open_folder(fd, name) as inner:
            self.update_folder(inner, (*folder_path, name), inside, EMPTY_TREE, scan=True)
        try:
            os.rmdir(name, dir_fd=fd)
        except OSError:  # something came meanwhile
            self._move_to_lost(fd, folder_path, name)

    def _move_to_lost(
        self, fd: int, folder_path: NameParts, name: bytes, current_name: bytes | None = None
    ) -> None:
        """Moves an entry, which `fd` may hold under another name, to its path below
        `lost_folder`."""
        self.lost_folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            place = stack.enter_context(folder_io.open_folder(None, self.lost_folder))
            for part in folder_path:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=place)
                place = stack.enter_context(folder_io.open_folder(place, part))
            free = name
            for number in itertools.count(1):
                if folder_io.entry_status(place, free) is None:
                    break
                free = b"%b.%d" % (name[:240], number)
            os.rename(current_name or name, free, src_dir_fd=fd, dst_dir_fd=place)
        self.moved_paths.append("/".join(from_bytes(part) for part in (*folder_path, free)))


def _on_disk(entry: bytes) -> bytes:
    return to_bytes(unescape_name(entry))
