"""Finds files and folders of the same name elsewhere, for a model that got the folder wrong."""

from __future__ import annotations

from itertools import islice
from pathlib import PurePosixPath

from activities.checkpoints import Files
from activities.checkpoints.checkpoint_errors import quote_path_in_error
from protocol.short_text import first_few

MAX_SEARCHED = 5000
"""Most files that are searched."""
MAX_NAMED = 3


def namesakes_note(files: Files, path: str) -> str:
    """Return a sentence on the files elsewhere that have the path's name, else on the folders;
    empty if none has."""
    name = PurePosixPath(path).name
    if not name:
        return ""
    named_files: list[str] = []
    # A dictionary keeps the order, and each folder once.
    named_folders: dict[str, None] = {}
    for entry in islice(files.walk(), MAX_SEARCHED):
        *parents, own = entry.path.split("/")
        if own == name:
            named_files.append(quote_path_in_error(entry.path))
        elif name in parents:
            folder = "/".join(parents[: parents.index(name) + 1])
            named_folders[quote_path_in_error(folder)] = None
    if named_files:
        return f" Files of that name: {first_few(named_files, MAX_NAMED)}."
    if named_folders:
        return f" Folders of that name: {first_few(list(named_folders), MAX_NAMED)}."
    return ""
