"""Put entries into a tree and remove them, including obstacles and emptied folders.

Works on path parts, since names from a person or a command may break the path rules for tools.
"""

from collections.abc import Callable

from activities.checkpoints.object_store import EMPTY_TREE
from activities.checkpoints.sharded_tree import FOLDER, TreeEntry
from activities.checkpoints.tree_files import Files


def with_entry(files: Files, path: str, raw: TreeEntry | None) -> Files:
    """Return `files` with the entry set (None: removed), replacing a file in a folder's place.

    A tree that lags behind the workspace may still have a file where there is a folder now.
    """
    parts = tuple(path.split("/"))
    for depth in range(1, len(parts)):
        present = files.tree_entry(parts[:depth])
        if present is not None and present.mode != FOLDER:
            files = files.with_tree_entry(parts[:depth], None)
            break
    if raw is None and files.tree_entry(parts) is None:
        return files
    return files.with_tree_entry(parts, raw)


def without_entry(files: Files, path: str, may_remove: Callable[[str], bool]) -> Files:
    """Return `files` without the entry and without emptied parents that `may_remove` allows."""
    files = files.with_tree_entry(tuple(path.split("/")), None)
    while (path := path.rpartition("/")[0]) and may_remove(path):
        parts = tuple(path.split("/"))
        if files.tree_entry(parts) != TreeEntry(FOLDER, EMPTY_TREE):
            break
        files = files.with_tree_entry(parts, None)
    return files
