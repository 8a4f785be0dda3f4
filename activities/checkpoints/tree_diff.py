"""Compare two trees; the cost depends on the differences, not on the size."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import unified_diff
from typing import NamedTuple

from activities.checkpoints.checkpoint_errors import FilesError
from activities.checkpoints.entry_names import name_to_bytes, unescape_name
from activities.checkpoints.object_store import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import (
    FOLDER,
    Node,
    TreeEntry,
    child_tree_nodes,
    load_tree_node,
    shard_entry_count,
)
from activities.checkpoints.tree_files import FileEntry, Files


@dataclass(frozen=True, slots=True)
class Change:
    path: str
    old: FileEntry | None
    new: FileEntry | None


def diff_files(old: Files | None, new: Files) -> Iterator[Change]:
    """Yield the paths at which two trees differ, in the order of `Files.walk`.

    `old` None counts as an empty tree. Compares what `walk` yields: files, links and empty
    folders. A folder on both sides, empty or not, is not reported itself; its changes are.
    """
    before = TreeEntry(FOLDER, bytes.fromhex(old.id)) if old else TreeEntry(FOLDER, EMPTY_TREE)
    after = TreeEntry(FOLDER, bytes.fromhex(new.id))
    stack: list[tuple[tuple[str, ...], TreeEntry | None, TreeEntry | None]] = [((), before, after)]
    while stack:
        parts, was, now = stack.pop()
        was_folder, now_folder = _is_folder(was), _is_folder(now)
        if parts and not (was_folder and now_folder):
            removed, added = _leaf_entry(was), _leaf_entry(now)
            if removed or added:
                path = "/".join(parts)
                yield Change(
                    path,
                    (old or new).to_entry(parts, removed) if removed else None,
                    new.to_entry(parts, added) if added else None,
                )
        below = diff_sharded_trees(
            new.store,
            was.id if was and was_folder else EMPTY_TREE,
            now.id if now and now_folder else EMPTY_TREE,
        )
        named = [
            (unescape_name(name), old_entry, new_entry) for name, old_entry, new_entry in below
        ]
        named.sort(key=lambda item: name_to_bytes(item[0]), reverse=True)
        stack += [((*parts, name), old_entry, new_entry) for name, old_entry, new_entry in named]


def _is_folder(raw: TreeEntry | None) -> bool:
    return raw is not None and raw.mode == FOLDER


def _leaf_entry(raw: TreeEntry | None) -> TreeEntry | None:
    return None if raw is not None and raw.mode == FOLDER and raw.id != EMPTY_TREE else raw


def diff_sharded_trees(
    store: ObjectStore, old: bytes, new: bytes
) -> Iterator[tuple[bytes, TreeEntry | None, TreeEntry | None]]:
    """Yield (escaped name, old, new) for the differing entries of one folder, unordered."""
    return _diff_tree_nodes(store, old, new, 0)


def _diff_tree_nodes(
    store: ObjectStore, old: bytes | Node, new: bytes | Node, depth: int
) -> Iterator[tuple[bytes, TreeEntry | None, TreeEntry | None]]:
    if old == new:
        return
    before, after = (
        load_tree_node(store, side) if isinstance(side, bytes) else side for side in (old, new)
    )
    if shard_entry_count(before) is None and shard_entry_count(after) is None:
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                yield name, before.get(name), after.get(name)
        return
    olds, news = child_tree_nodes(before, depth), child_tree_nodes(after, depth)
    for digit in olds.keys() | news.keys():
        yield from _diff_tree_nodes(
            store, olds.get(digit, EMPTY_TREE), news.get(digit, EMPTY_TREE), depth + 1
        )


MAX_BYTES = 200_000


def diff_lines(
    old: Files, new: Files, change: Change, names: tuple[str, str]
) -> Iterator[str] | None:
    """Yield the lines of a unified diff with their line ends; None if not text or too long.

    Args:
        names: Names of the two sides in the header; empty names are left out.
    """
    before, after = _line_diff_side_text(old, change.old), _line_diff_side_text(new, change.new)
    if before is None or after is None:
        return None
    was, now = (f"{change.path} ({name})" if name else change.path for name in names)
    lines = unified_diff(
        before.splitlines(keepends=True),
        after.splitlines(keepends=True),
        was if change.old else "nothing",
        now if change.new else "nothing",
    )
    return (
        line if line.endswith("\n") else f"{line}\n\\ no newline at the end\n" for line in lines
    )


def _line_diff_side_text(files: Files, entry: FileEntry | None) -> str | None:
    if entry is None or entry.kind == "folder":
        return ""
    if entry.size > MAX_BYTES:
        return None
    data = files.read_entry(entry)
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None


EMPTY_FOLDER = TreeEntry(FOLDER, EMPTY_TREE)


class MergedFiles(NamedTuple):
    files: Files
    kept: list[str]
    """Paths at which both sides made different changes, and one of them is left out."""


def merge_files(base: Files, changed: Files, present: Files) -> MergedFiles:
    """Apply the changes between `base` and `changed` to `present`.

    What `present` has changed itself at the same path stays as it is there. If `changed` has a file
    in place of a folder, or the other way round, that is a change of everything below.
    """
    kept: list[str] = []
    for change in diff_files(base, changed):
        # A path comes before those below it.
        if kept and change.path.startswith(f"{kept[-1]}/"):
            continue
        parts = tuple(change.path.split("/"))
        now, wanted = present.tree_entry(parts), changed.tree_entry(parts)
        if now == wanted or (_is_folder(now) and _is_folder(wanted)):
            continue
        if now != base.tree_entry(parts):
            kept.append(change.path)
            continue
        try:
            present = present.with_tree_entry(parts, wanted)
        except FilesError:  # A folder on the way is a file by now.
            kept.append(change.path)
        if wanted is None:
            present = _without_emptied_folders(present, changed, parts[:-1])
    return MergedFiles(present, kept)


def _without_emptied_folders(present: Files, changed: Files, parts: tuple[str, ...]) -> Files:
    while parts and present.tree_entry(parts) == EMPTY_FOLDER and not changed.tree_entry(parts):
        present = present.with_tree_entry(parts, None)
        parts = parts[:-1]
    return present
