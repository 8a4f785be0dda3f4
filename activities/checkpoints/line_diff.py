"""What differs between two versions of a file, line by line."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from activities.checkpoints.diff import Change
from activities.checkpoints.files import FileEntry, Files

MAX_BYTES = 200_000
"""Of a side that is compared by line."""


def diff_lines(
    old: Files, new: Files, change: Change, names: tuple[str, str]
) -> Iterator[str] | None:
    """The lines of a unified diff, each with its end; None for what is no text or too long.

    Args:
        old: Files that the change starts from.
        new: Files that it leads to.
        change: Of one path.
        names: What the two sides are called; empty ones are left out.
    """
    before, after = _side_text(old, change.old), _side_text(new, change.new)
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


def _side_text(files: Files, entry: FileEntry | None) -> str | None:
    """A side as text, empty where nothing is."""
    if entry is None or entry.kind == "folder":
        return ""
    if entry.size > MAX_BYTES:
        return None
    data = files.read_entry(entry)
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
