"""Entries put into a tree and taken out of it, whatever is in the way or left empty.

By parts, since names that a person or a command gave may break the rules for tools.
"""

from __future__ import annotations

from collections.abc import Callable

from activities.checkpoints.files import Files
from activities.checkpoints.objects import EMPTY_TREE
from activities.checkpoints.sharded_tree import FOLDER, TreeEntry


def with_entry(files: Files, path: str, raw: TreeEntry | None) -> Files:
    """`files` with (or, for None, without) that entry; a file where a folder is needed goes.

    Trees that follow the workspace late may still hold a file where it has a folder now.
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
    """`files` without what lies there, nor the folders above it that are empty then and go too."""
    files = files.with_tree_entry(tuple(path.split("/")), None)
    while (path := path.rpartition("/")[0]) and may_remove(path):
        parts = tuple(path.split("/"))
        if files.tree_entry(parts) != TreeEntry(FOLDER, EMPTY_TREE):
            break
        files = files.with_tree_entry(parts, None)
    return files
