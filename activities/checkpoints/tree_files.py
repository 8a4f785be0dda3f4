"""The files of one tree: an immutable handle that reads and writes only git objects."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, Self

from activities.checkpoints import sharded_tree
from activities.checkpoints.checkpoint_errors import (
    FileMissing,
    FilesError,
    PathRefused,
    quote_path_in_error,
)
from activities.checkpoints.entry_names import (
    check_path_size,
    entry_name,
    name_from_bytes,
    name_to_bytes,
    parse_path,
    unescape_name,
)
from activities.checkpoints.object_store import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import EXECUTABLE, FILE, FOLDER, LINK, TreeEntry

MAX_FILE_BYTES = 50 * 1024 * 1024
MAX_LINKS = 40

EntryKind = Literal["file", "folder", "link"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """The entry at a path. `id`: hex id of the blob, or of the folder's tree."""

    path: str
    kind: EntryKind
    executable: bool
    id: str
    _store: ObjectStore = field(repr=False, compare=False)

    @property
    def size(self) -> int:
        """Size in bytes of a file or of a link's target; 0 for a folder. Read on access."""
        return 0 if self.kind == "folder" else self._store.size(bytes.fromhex(self.id))


class Files:
    """The files of one tree.

    Every change returns a new `Files` and writes only blobs and trees: no ref, index or folder.
    Changes are idempotent. Paths follow `parse_path`. Links are followed inside the tree (in the
    last name not by `entry`, `link`, `move`, `delete`); one that leads out raises PathRefused. A
    missing object raises CheckpointMissing. Use only in the thread of its `store`.
    """

    __slots__ = ("_root", "limit", "store")

    def __init__(self, store: ObjectStore, tree_id: str, *, limit: int = MAX_FILE_BYTES) -> None:
        """`limit`: maximum size in bytes of a file passed to `write`."""
        self.store = store
        self.limit = limit
        self._root = bytes.fromhex(tree_id)

    @classmethod
    def empty(cls, store: ObjectStore) -> Self:
        return cls(store, sharded_tree.build_tree(store, {}).hex())

    @property
    def id(self) -> str:
        return self._root.hex()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Files) and self._root == other._root

    def __hash__(self) -> int:
        return hash(self._root)

    def __repr__(self) -> str:
        return f"Files({self.id})"

    # Reading

    def read(self, path: str) -> bytes:
        raw = self.tree_entry(self._resolve_path(path))
        if raw is None:
            raise self._missing_file(path)
        if raw.mode == FOLDER:
            raise FilesError(
                f"{quote_path_in_error(path)} is a folder; list it or name a file in it."
            )
        return self.store.read(raw.id)

    def read_entry(self, entry: FileEntry) -> bytes:
        """Return a listed file's content, or a link's target. Path rules do not apply."""
        return self.store.read(bytes.fromhex(entry.id))

    def entry(self, path: str) -> FileEntry | None:
        parts = self._resolve_path(path, follow=False, allow_root=True)
        raw = self.tree_entry(parts)
        return self.to_entry(parts, raw) if raw else None

    def resolve_links(self, path: str) -> str:
        """Return the path with its links followed; nothing needs to exist there."""
        return "/".join(self._resolve_path(path, allow_root=True))

    def children(self, path: str = "") -> list[FileEntry]:
        """Return a folder's entries, sorted by name bytes. Raises FileMissing, FilesError."""
        parts = self._resolve_path(path, allow_root=True)
        return [
            self.to_entry((*parts, name), raw) for name, raw in self._folder_entries(path, parts)
        ]

    def subfolder(self, path: str) -> "Files":
        entry = self.entry(path)
        if entry is None:
            raise FileMissing(path)
        if entry.kind != "folder":
            raise FilesError(f"{quote_path_in_error(path)} is not a folder; name one.")
        return Files(self.store, entry.id, limit=self.limit)

    def walk(self, path: str = "") -> Iterator[FileEntry]:
        """Yield files, links and empty folders below a folder: depth first, sorted by bytes."""
        parts = self._resolve_path(path, allow_root=True)
        # A stack, not recursion: a tree may be deeper than Python's recursion limit.
        stack = [((*parts, name), raw) for name, raw in reversed(self._folder_entries(path, parts))]
        while stack:
            names, raw = stack.pop()
            if raw.mode != FOLDER or raw.id == EMPTY_TREE:
                yield self.to_entry(names, raw)
            else:
                stack += [
                    ((*names, name), below)
                    for name, below in reversed(self._sorted_entries(raw.id))
                ]

    # Changing

    def write(self, path: str, data: bytes, *, executable: bool | None = None) -> "Files":
        """Write a file, creating parent folders. `executable` None keeps the present mode."""
        if len(data) > self.limit:
            raise FilesError(
                f"{quote_path_in_error(path)} would have {len(data):,} bytes; a file may have "
                f"{self.limit:,}. "
                "Split it."
            )
        parts = self._resolve_path(path)
        present = self.tree_entry(parts)
        if present is not None and present.mode == FOLDER:
            raise FilesError(f"{quote_path_in_error(path)} is a folder; name a file in it.")
        if executable is None:
            executable = present is not None and present.mode == EXECUTABLE
        blob = self.store.write_blob(data)
        return self.with_tree_entry(parts, TreeEntry(EXECUTABLE if executable else FILE, blob))

    def make_folder(self, path: str) -> "Files":
        parts = self._resolve_path(path, allow_root=True)
        present = self.tree_entry(parts)
        if present is not None:
            if present.mode != FOLDER:
                raise FilesError(
                    f"{quote_path_in_error(path)} is a file; choose another name for the folder."
                )
            return self
        return self.with_tree_entry(
            parts, TreeEntry(FOLDER, sharded_tree.build_tree(self.store, {}))
        )

    def link(self, path: str, target: str) -> "Files":
        """Create a symbolic link. The target is stored unchanged and checked when followed."""
        if not target or any(char == "\0" or "\ud800" <= char < "\udc80" for char in target):
            raise FilesError(
                f"The link {quote_path_in_error(path)} needs a target; name a path relative to it."
            )
        parts = self._resolve_path(path, follow=False)
        present = self.tree_entry(parts)
        if present is not None and present.mode == FOLDER:
            raise FilesError(
                f"{quote_path_in_error(path)} is a folder; choose another name for the link."
            )
        return self.with_tree_entry(
            parts, TreeEntry(LINK, self.store.write_blob(name_to_bytes(target)))
        )

    def delete(self, path: str) -> "Files":
        parts = self._resolve_path(path, follow=False)
        if self.tree_entry(parts) is None:
            raise FileMissing(path)
        return self.with_tree_entry(parts, None)

    def move(self, old: str, new: str) -> "Files":
        source, target = (
            self._resolve_path(old, follow=False),
            self._resolve_path(new, follow=False),
        )
        raw = self.tree_entry(source)
        if raw is None:
            raise FileMissing(old)
        if source == target:
            return self
        if target[: len(source)] == source:
            raise FilesError(
                f"{quote_path_in_error(old)} cannot be moved into itself; choose another place."
            )
        if self.tree_entry(target) is not None:
            raise FilesError(f"{quote_path_in_error(new)} is already there; delete it first.")
        moved = self.with_tree_entry(source, None).with_tree_entry(target, raw)
        if raw.mode == FOLDER:
            # Paths below the folder must stay within the size limits.
            for entry in moved.walk("/".join(target)):
                check_path_size(entry.path)
        return moved

    # By parts: no path rules, no links; for names that the path rules would refuse.

    def tree_entry(self, parts: tuple[str, ...]) -> TreeEntry | None:
        entry: TreeEntry | None = TreeEntry(FOLDER, self._root)
        for part in parts:
            if entry is None or entry.mode != FOLDER:
                return None
            entry = sharded_tree.get_sharded_tree_entry(self.store, entry.id, entry_name(part))
        return entry

    def with_tree_entry(self, parts: tuple[str, ...], raw: TreeEntry | None) -> "Files":
        """Set an entry, or remove it for None. Raises FilesError if a parent is a file."""
        root = self._replace_entry(self._root, parts, 0, raw)
        return Files(self.store, root.hex(), limit=self.limit)

    def _replace_entry(
        self, folder: bytes, parts: tuple[str, ...], depth: int, raw: TreeEntry | None
    ) -> bytes:
        name = entry_name(parts[depth])
        if depth == len(parts) - 1:
            return sharded_tree.put_sharded_tree_entry(self.store, folder, name, raw)
        below = sharded_tree.get_sharded_tree_entry(self.store, folder, name)
        if below is None and raw is None:
            return folder
        if below is not None and below.mode != FOLDER:
            parent = "/".join(parts[: depth + 1])
            raise FilesError(
                f"{quote_path_in_error(parent)} is not a folder; choose another path or delete it."
            )
        child = self._replace_entry(below.id if below else EMPTY_TREE, parts, depth + 1, raw)
        return sharded_tree.put_sharded_tree_entry(
            self.store, folder, name, TreeEntry(FOLDER, child)
        )

    def _resolve_path(
        self, path: str, *, follow: bool = True, allow_root: bool = False
    ) -> tuple[str, ...]:
        """Return a path's names with links followed; a link as last name only with `follow`."""
        todo = list(reversed(parse_path(path, allow_root=allow_root)))
        done: list[str] = []
        trail = [TreeEntry(FOLDER, self._root)]  # the root, then the entry of each name in `done`
        links = 0
        while todo:
            part = todo.pop()
            if part == "..":
                if not done:
                    raise PathRefused(
                        f"{quote_path_in_error(path)} leads out of the workspace by a link."
                    )
                done.pop()
                trail.pop()
                continue
            level = trail[-1]
            raw = None
            if level.mode == FOLDER:
                raw = sharded_tree.get_sharded_tree_entry(self.store, level.id, entry_name(part))
            if raw is not None and raw.mode == LINK and (follow or todo):
                links += 1
                target = self.store.read(raw.id)
                if links > MAX_LINKS:
                    raise PathRefused(
                        f"{quote_path_in_error(path)} follows more than {MAX_LINKS} links."
                    )
                if target.startswith(b"/"):
                    raise PathRefused(
                        f"{quote_path_in_error(path)} leads out of the workspace by a link."
                    )
                steps = [name_from_bytes(step) for step in target.split(b"/")]
                todo += [step for step in reversed(steps) if step not in {"", "."}]
                continue
            done.append(part)
            # A missing entry counts as an empty folder, so nothing is found below it.
            trail.append(raw or TreeEntry(FOLDER, EMPTY_TREE))
        # The resolved path must follow the path rules as well.
        return parse_path("/".join(done), allow_root=allow_root) if links else tuple(done)

    def _missing_file(self, path: str) -> FileMissing:
        """Return what says that a path leads nowhere; a listing still shows a broken link."""
        entry = self.entry(path)
        if entry is None or entry.kind != "link":
            return FileMissing(path)
        return FileMissing(path, name_from_bytes(self.read_entry(entry)))

    def _folder_entries(self, path: str, parts: tuple[str, ...]) -> list[tuple[str, TreeEntry]]:
        raw = self.tree_entry(parts)
        if raw is None:
            raise self._missing_file(path)
        if raw.mode != FOLDER:
            raise FilesError(f"{quote_path_in_error(path)} is a file; read it or name a folder.")
        return self._sorted_entries(raw.id)

    def _sorted_entries(self, folder: bytes) -> list[tuple[str, TreeEntry]]:
        escaped = sharded_tree.list_tree_entries(self.store, folder).items()
        listing = [(unescape_name(name), raw) for name, raw in escaped]
        return sorted(listing, key=lambda item: name_to_bytes(item[0]))

    def to_entry(self, parts: tuple[str, ...], raw: TreeEntry) -> FileEntry:
        kind: EntryKind = (
            "folder" if stat.S_ISDIR(raw.mode) else "link" if raw.mode == LINK else "file"
        )
        return FileEntry("/".join(parts), kind, raw.mode == EXECUTABLE, raw.id.hex(), self.store)
