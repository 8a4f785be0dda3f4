"""Update a real folder to match a tree; content we did not write is moved away, never deleted."""

import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from activities.checkpoints import folder_io, sharded_tree, tree_diff
from activities.checkpoints.entry_names import name_from_bytes, unescaped_file_name
from activities.checkpoints.object_store import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import EXECUTABLE, FOLDER, LINK, TreeEntry

# Top-level workspace names that are excluded from checkpoints.
EXCLUDED_NAMES = frozenset({b"errors"})

NameParts = tuple[bytes, ...]


@dataclass
class Checkout:
    """One pass over one workspace folder.

    `drafts` is the descriptor of a private folder on the same file system, where files are
    written before they are renamed into place. Strays go to `lost_folder`, created on demand;
    `moved_paths` lists them relative to it.
    """

    store: ObjectStore
    drafts: int
    lost_folder: Path
    moved_paths: list[str] = field(default_factory=list)
    _draft: Iterator[int] = field(default_factory=itertools.count)

    def update_folder(
        self, fd: int, folder_path: NameParts, known: list[bytes], target: bytes, *, scan: bool
    ) -> None:
        """Update the opened folder `fd`, at `folder_path`, to the tree `target`.

        `known`: trees that we may have written there ourselves; only their content may be deleted.
        Without `scan`, only entries that differ between `known[0]` and `target` are checked.
        """
        if not scan:
            differing = {
                unescaped_file_name(name): (old, new)
                for name, old, new in tree_diff.diff_sharded_trees(self.store, known[0], target)
            }
            for name, (old, new) in sorted(differing.items()):
                with folder_io.full_path_in_io_errors((*folder_path, name)):
                    self._update_entry(fd, folder_path, name, [old] if old else [], new, scan=False)
            return
        target_entries = {
            unescaped_file_name(name): raw
            for name, raw in sharded_tree.list_tree_entries(self.store, target).items()
        }
        known_entries = [
            {
                unescaped_file_name(name): raw
                for name, raw in sharded_tree.list_tree_entries(self.store, tree).items()
            }
            for tree in known
        ]
        for name in sorted(target_entries.keys() | set(folder_io.list_folder_names(fd))):
            have = [tree[name] for tree in known_entries if name in tree]
            with folder_io.full_path_in_io_errors((*folder_path, name)):
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
        status = folder_io.folder_entry_status(fd, name)
        is_folder = status is not None and stat.S_ISDIR(status.st_mode)
        if target is not None and target.mode == FOLDER:
            if not is_folder:
                if status is not None:
                    self._free_name(fd, folder_path, name, known)
                os.mkdir(name, dir_fd=fd)
            inside = [raw.id for raw in known if raw.mode == FOLDER]
            with folder_io.open_folder(fd, name) as inner:
                # A folder that is new or was missing must be filled completely.
                full_scan = scan or not is_folder or not inside
                self.update_folder(inner, (*folder_path, name), inside, target.id, scan=full_scan)
            return
        if is_folder:
            self._remove_folder(fd, folder_path, name, known)
        elif status is not None:
            if target is not None and folder_io.folder_entry_has_content(
                self.store, fd, name, target
            ):
                if target.mode != LINK:
                    folder_io.set_executable(fd, name, target.mode == EXECUTABLE)
                return
            if target is None:
                self._free_name(fd, folder_path, name, known)
            elif not self._is_ours(fd, name, known):
                self._move_to_lost(fd, folder_path, name)
        if target is not None:
            # Rename only a complete file; rename also follows no link created in the meantime.
            draft, old = self._draft_name(), self._draft_name()
            folder_io.create_folder_entry(self.store, target, self.drafts, draft)
            # Without hard links, an edit made between the check and the rename is lost.
            with suppress(OSError):
                os.link(name, old, src_dir_fd=fd, dst_dir_fd=self.drafts, follow_symlinks=False)
            os.rename(draft, name, src_dir_fd=self.drafts, dst_dir_fd=fd)
            self._delete_old(folder_path, name, old, known)

    def _is_ours(self, fd: int, name: bytes, known: list[TreeEntry]) -> bool:
        return any(folder_io.folder_entry_has_content(self.store, fd, name, raw) for raw in known)

    def _free_name(
        self, fd: int, folder_path: NameParts, name: bytes, known: list[TreeEntry]
    ) -> None:
        """Free the name of a file, link or device: delete it if it is ours, else move it away."""
        if self._is_ours(fd, name, known):
            old = self._draft_name()
            os.rename(name, old, src_dir_fd=fd, dst_dir_fd=self.drafts)
            self._delete_old(folder_path, name, old, known)
        else:
            self._move_to_lost(fd, folder_path, name)

    def _delete_old(
        self, folder_path: NameParts, name: bytes, old: bytes, known: list[TreeEntry]
    ) -> None:
        """Delete a replaced entry; if a person wrote to it since the check, move it away."""
        if self._is_ours(self.drafts, old, known):
            os.unlink(old, dir_fd=self.drafts)
        elif folder_io.folder_entry_status(self.drafts, old) is not None:
            self._move_to_lost(self.drafts, folder_path, name, old)

    def _draft_name(self) -> bytes:
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
        except OSError:  # something was added in the meantime
            self._move_to_lost(fd, folder_path, name)

    def _move_to_lost(
        self, fd: int, folder_path: NameParts, name: bytes, current_name: bytes | None = None
    ) -> None:
        """Move an entry to its path below `lost_folder`.

        `current_name`: its name in `fd`, if that is not `name`.
        """
        self.lost_folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            place = stack.enter_context(folder_io.open_folder(None, self.lost_folder))
            for part in folder_path:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=place)
                place = stack.enter_context(folder_io.open_folder(place, part))
            free = name
            for number in itertools.count(1):
                if folder_io.folder_entry_status(place, free) is None:
                    break
                free = b"%b.%d" % (name[:240], number)
            os.rename(current_name or name, free, src_dir_fd=fd, dst_dir_fd=place)
        self.moved_paths.append("/".join(name_from_bytes(part) for part in (*folder_path, free)))
