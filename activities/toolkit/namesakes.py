"""Finds files of the same name in other folders, for a model that got the folder wrong."""

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
    """Return a sentence on the files elsewhere that have the path's name; empty if none has."""
    name = PurePosixPath(path).name
    named = [
        quote_path_in_error(entry.path)
        for entry in islice(files.walk(), MAX_SEARCHED)
        if name and PurePosixPath(entry.path).name == name
    ]
    if not named:
        return ""
    return f" Files of that name: {first_few(named, MAX_NAMED)}."
