"""Merges changes that two sides made to the same tree."""

from contextlib import suppress

from activities.checkpoints.checkpoint_errors import FilesError
from activities.checkpoints.files import Files
from activities.checkpoints.tree_diff import diff_files


def merge_files(base: Files, changed: Files, present: Files) -> Files:
    """Apply the changes between `base` and `changed` to `present`.

    What `present` has changed itself at the same path stays as it is there.
    """
    for change in diff_files(base, changed):
        parts = tuple(change.path.split("/"))
        if present.tree_entry(parts) != base.tree_entry(parts):
            continue
        # A folder on the way may be a file by now.
        with suppress(FilesError):
            present = present.with_tree_entry(parts, changed.tree_entry(parts))
    return present
