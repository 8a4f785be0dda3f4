"""What a person changed in the folder of a paused job, as the model reads it."""

from __future__ import annotations

from collections.abc import Sequence

from activities.checkpoints import Change, Files, diff_lines
from activities.text.plain import plain

MOST_PATHS = 20
MOST_CHARACTERS = 6000
"""Of the diffs."""
INSTRUCTIONS = "instructions.md"


def describe_edits(old: Files, new: Files, changes: Sequence[Change]) -> str:
    """The paths that a person changed and their diffs, `MOST_CHARACTERS` of them.

    The diff of the instructions comes first, as what it adds is to be done.
    """
    if not changes:
        return ""
    first = sorted(changes, key=lambda change: (change.path != INSTRUCTIONS, change.path))
    paths = ", ".join(_name(change) for change in first[:MOST_PATHS])
    if (more := len(first) - MOST_PATHS) > 0:
        paths += f" and {more} more"
    text = f"A person edited the files while the job was paused: {paths}."
    if first[0].path == INSTRUCTIONS:
        text += " The instructions are in force as they are now."
    left, lines = MOST_CHARACTERS, [text]
    for change in first[:MOST_PATHS]:
        for line in diff_lines(old, new, change, ("before", "now")) or ():
            left -= len(line)
            if left < 0:
                return "\n".join([*lines, "… and more; read the files."])
            lines.append(plain(line.rstrip("\n")))
    return "\n".join(lines)


def _name(change: Change) -> str:
    if change.old is None:
        return f"{plain(change.path)} (new)"
    return plain(change.path) + (" (removed)" if change.new is None else "")
