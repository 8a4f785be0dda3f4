"""What a phase changed in the files, as text of a bounded size."""

from __future__ import annotations

from pygit2 import Patch

from activities.checkpoints import Change, Entry, Files, diff
from activities.text.plain import plain
from activities.text.tokens import clip
from activities.toolkit.ownership import is_system

MOST_BYTES = 200_000
"""Of one side of a file that is compared line by line."""
MOST_TOKENS = 16_000
FILE_TOKENS = 4000
MOST_FILES = 200
LEFT_OUT = "this part is left out"


def phase_diff(before: Files, after: Files) -> str:
    """The changes of a phase, bounded; what the system keeps is left out."""
    changes = [change for change in diff(before, after) if not is_system(change.path)]
    names = [f"{_word(change)} {plain(change.path)}" for change in changes[:MOST_FILES]]
    if (more := len(changes) - MOST_FILES) > 0:
        names.append(f"and {more:,} more")
    parts = ["\n".join(names) or "No file changed."]
    left = MOST_TOKENS * 8
    for change in changes[:MOST_FILES]:
        part = clip(_patch(before, after, change), FILE_TOKENS, LEFT_OUT)
        parts.append(part)
        left -= len(part)
        if left < 0:
            break
    return clip("\n\n".join(parts), MOST_TOKENS, LEFT_OUT)


def _word(change: Change) -> str:
    if change.old is None:
        return "added"
    return "removed" if change.new is None else "changed"


def _patch(before: Files, after: Files, change: Change) -> str:
    path = plain(change.path)
    sides = [_content(files, entry) for files, entry in ((before, change.old), (after, change.new))]
    if None in sides or any(b"\0" in side for side in sides if side):
        sizes = " → ".join(f"{entry.size:,}" for entry in (change.old, change.new) if entry)
        return f"{path}: not shown line by line ({sizes} bytes)"
    patch = Patch.create_from(
        sides[0], sides[1], old_as_path=path, new_as_path=path, context_lines=3
    )
    return patch.data.decode(errors="replace").rstrip()


def _content(files: Files, entry: Entry | None) -> bytes | None:
    """One side; None for what is too large."""
    if entry is None or entry.kind == "folder":
        return b""
    return None if entry.size > MOST_BYTES else files.content(entry)
