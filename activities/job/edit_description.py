"""Describe a person's edits in the folder of a paused job for the model."""

from __future__ import annotations

from collections.abc import Sequence

from activities.checkpoints import Change, Files, diff_lines
from activities.text.safe_text import replace_surrogates
from protocol.short_text import first_few

MAX_PATHS = 20
MAX_CHARACTERS = 6000
"""Most characters of the diffs."""
INSTRUCTIONS = "instructions.md"


def describe_edits(old: Files, new: Files, changes: Sequence[Change]) -> str:
    """Return the paths that a person changed, and their diffs up to `MAX_CHARACTERS`.

    The diff of the instructions comes first, since it may ask for more work.
    """
    if not changes:
        return ""
    first = _sort_edits_to_describe(changes)
    text = f"A person edited the files while the job was paused: {name_edited_paths(changes)}."
    if first[0].path == INSTRUCTIONS:
        text += " The instructions are in force as they are now."
    remaining, lines = MAX_CHARACTERS, [text]
    for change in first[:MAX_PATHS]:
        for line in diff_lines(old, new, change, ("before", "now")) or ():
            remaining -= len(line)
            if remaining < 0:
                return "\n".join([*lines, "… and more; read the files."])
            lines.append(replace_surrogates(line.rstrip("\n")))
    return "\n".join(lines)


def name_edited_paths(changes: Sequence[Change], most: int = MAX_PATHS) -> str:
    """Return `instructions.md, notes/a.md (new) and 3 more`, the instructions first."""
    return first_few(
        [_edit_path_label(change) for change in _sort_edits_to_describe(changes)], most
    )


def _sort_edits_to_describe(changes: Sequence[Change]) -> list[Change]:
    return sorted(changes, key=lambda change: (change.path != INSTRUCTIONS, change.path))


def _edit_path_label(change: Change) -> str:
    if change.old is None:
        return f"{replace_surrogates(change.path)} (new)"
    return replace_surrogates(change.path) + (" (removed)" if change.new is None else "")
