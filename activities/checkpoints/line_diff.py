"""Compare two versions of a file line by line."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import unified_diff

from activities.checkpoints.files import FileEntry, Files
from activities.checkpoints.tree_diff import Change

MAX_BYTES = 200_000
"""Largest size of a version that is compared by line."""


def diff_lines(
    old: Files, new: Files, change: Change, names: tuple[str, str]
) -> Iterator[str] | None:
    """Yield the lines of a unified diff with their line ends; None if not text or too long.

    Args:
        old: Files before the change.
        new: Files after the change.
        change: The changed path.
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
    """Return one side as text; empty if the file does not exist there."""
    if entry is None or entry.kind == "folder":
        return ""
    if entry.size > MAX_BYTES:
        return None
    data = files.read_entry(entry)
    try:
        return None if b"\0" in data else data.decode()
    except UnicodeDecodeError:
        return None
