"""Brings a real folder up to a tree; what is not known to be ours is moved away, never deleted."""

import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from activities.checkpoints import folder_io, sharded_tree
from activities.checkpoints.names import from_bytes, to_bytes, unescape
from activities.checkpoints.objects import EMPTY_TREE, Store
from activities.checkpoints.sharded_tree import EXECUTABLE, FOLDER, LINK, Raw

# At the top of a workspace and in no checkpoint.
NOT_OURS = frozenset({b"errors"})

Names = tuple[bytes, ...]


@dataclass
class Checkout:
    """One pass over one workspace folder.

    `drafts` is a folder of ours on the same file system in which files are made before they get
    their place; `lost` is where strays go, made when the first one does. `found` collects what
    was moved there, as paths below `lost`.
    """

    store: Store
    drafts: int
    lost: Path
    found: list[str] = field(default_factory=list)
    _draft: Iterator[int] = field(default_factory=itertools.count)

    def folder(self, fd: int, at: Names, known: list[bytes], want: bytes, *, scan: bool) -> None:
        """Brings the opened folder `fd`, whose path is `at`, to the tree `want`.

        `known`: trees that we may have put there ourselves, so that their content is no person's.
        Without `scan` only the entries that differ between `known[0]` and `want` are looked at.
        """
        if not scan:
            differing = {
                _on_disk(name): (old, new)
                for name, old, new in sharded_tree.differences(self.store, known[0], want)
            }
            for name, (old, new) in sorted(differing.items()):
                with folder_io.naming((*at, name)):
                    self._item(fd, at, name, [old] if old else [], new, scan=False)
            return
        wanted = {
            _on_disk(name): raw for name, raw in sharded_tree.entries(self.store, want).items()
        }
        ours = [
            {_on_disk(name): raw for name, raw in sharded_tree.entries(self.store, tree).items()}
            for tree in known
        ]
        for name in sorted(wanted.keys() | set(folder_io.names(fd))):
            have = [tree[name] for tree in ours if name in tree]
            with folder_io.naming((*at, name)):
                self._item(fd, at, name, have, wanted.get(name), scan=True)

    def _item(
        self, fd: int, at: Names, name: bytes, known: list[Raw], want: Raw | None, *, scan: bool
    ) -> None:
        if not at and name in NOT_OURS:
            return
        there = folder_io.status(fd, name)
        is_folder = there is not None and stat.S_ISDIR(there.st_mode)
        if want is not None and want.mode == FOLDER:
            if not is_folder:
                if there is not None:
                    self._clear(fd, at, name, known)
                os.mkdir(name, dir_fd=fd)
            inside = [raw.id for raw in known if raw.mode == FOLDER]
            with folder_io.opened(fd, name) as inner:
                # A folder that is new here, or was missing, is filled from end to end.
                whole = scan or not is_folder or not inside
                self.folder(inner, (*at, name), inside, want.id, scan=whole)
            return
        if is_folder:
            self._remove_folder(fd, at, name, known)
        elif there is not None:
            if want is not None and folder_io.holds(self.store, fd, name, want):
                if want.mode != LINK:
                    folder_io.set_executable(fd, name, want.mode == EXECUTABLE)
                return
            if want is None:
                self._clear(fd, at, name, known)
            elif not self._is_ours(fd, name, known):
                self._lose(fd, at, name)
        if want is not None:
            # Under its name only when complete; a rename follows no link that appeared meanwhile.
            draft, old = self._drafted(), self._drafted()
            folder_io.make(self.store, want, self.drafts, draft)
            # Where the file system has no second names, what is written until now is lost.
            with suppress(OSError):
                os.link(name, old, src_dir_fd=fd, dst_dir_fd=self.drafts, follow_symlinks=False)
            os.rename(draft, name, src_dir_fd=self.drafts, dst_dir_fd=fd)
            self._drop(at, name, old, known)

    def _is_ours(self, fd: int, name: bytes, known: list[Raw]) -> bool:
        return any(folder_io.holds(self.store, fd, name, raw) for raw in known)

    def _clear(self, fd: int, at: Names, name: bytes, known: list[Raw]) -> None:
        """Frees the name of a file, link or device."""
        if self._is_ours(fd, name, known):
            old = self._drafted()
            os.rename(name, old, src_dir_fd=fd, dst_dir_fd=self.drafts)
            self._drop(at, name, old, known)
        else:
            self._lose(fd, at, name)

    def _drop(self, at: Names, name: bytes, old: bytes, known: list[Raw]) -> None:
        """Deletes what was taken from its place, unless a person wrote to it since it was looked
        at."""
        if self._is_ours(self.drafts, old, known):
            os.unlink(old, dir_fd=self.drafts)
        elif folder_io.status(self.drafts, old) is not None:
            self._lose(self.drafts, at, name, old)

    def _drafted(self) -> bytes:
        """A free name among the drafts."""
        return b"%d" % next(self._draft)

    def _remove_folder(self, fd: int, at: Names, name: bytes, known: list[Raw]) -> None:
        inside = [raw.id for raw in known if raw.mode == FOLDER]
        if not inside:
            self._lose(fd, at, name)
            return
        with folder_io.opened(fd, name) as inner:
            self.folder(inner, (*at, name), inside, EMPTY_TREE, scan=True)
        try:
            os.rmdir(name, dir_fd=fd)
        except OSError:  # something came meanwhile
            self._lose(fd, at, name)

    def _lose(self, fd: int, at: Names, name: bytes, held: bytes | None = None) -> None:
        """Moves an entry, which `fd` may hold under another name, to its path below `lost`."""
        self.lost.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            place = stack.enter_context(folder_io.opened(None, self.lost))
            for part in at:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=place)
                place = stack.enter_context(folder_io.opened(place, part))
            free = name
            for number in itertools.count(1):
                if folder_io.status(place, free) is None:
                    break
                free = b"%b.%d" % (name[:240], number)
            os.rename(held or name, free, src_dir_fd=fd, dst_dir_fd=place)
        self.found.append("/".join(from_bytes(part) for part in (*at, free)))


def _on_disk(entry: bytes) -> bytes:
    return to_bytes(unescape(entry))
