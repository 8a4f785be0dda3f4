"""Merges changes that two sides made to the same tree."""

from __future__ import annotations

from typing import NamedTuple

from activities.checkpoints.checkpoint_errors import FilesError
from activities.checkpoints.files import Files
from activities.checkpoints.object_store import EMPTY_TREE
from activities.checkpoints.sharded_tree import FOLDER, TreeEntry
from activities.checkpoints.tree_diff import diff_files

EMPTY_FOLDER = TreeEntry(FOLDER, EMPTY_TREE)


class MergedFiles(NamedTuple):
    """The result of a merge."""

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
    """Remove a folder and those around it that are empty now, and that `changed` has not."""
    while parts and present.tree_entry(parts) == EMPTY_FOLDER and not changed.tree_entry(parts):
        present = present.with_tree_entry(parts, None)
        parts = parts[:-1]
    return present


def _is_folder(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.mode == FOLDER
