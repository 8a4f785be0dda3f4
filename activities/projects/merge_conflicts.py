"""Conflicts of a merge: both versions are kept, marked within a text or side by side.

Entries of an index are untyped in pygit2.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import FileMode

from protocol.handoffs import ACCEPTED, YOURS

MARKS = re.compile(rf"^(?:<{{7}} {ACCEPTED}|>{{7}} {YOURS})\r?$".encode(), re.MULTILINE)
"""Marks of the system's merges. Others, such as `<<<<<<< HEAD`, belong to a text about git."""
_BEGIN, _END = f"<<<<<<< {ACCEPTED}", f">>>>>>> {YOURS}"
AROUND = 2
"""Lines shown before and after a conflict."""


def settle_merge_conflicts(
    repository: pygit2.Repository, index: Any, head: pygit2.Commit
) -> list[str]:
    """Put both versions of each conflict into the index; return a line for each.

    Args:
        repository: Where texts with conflict marks are stored.
        index: The index of the merge.
        head: The side that is called ours.
    """
    conflicts = _move_files_named_like_folders(index, head)
    for ancestor, ours, theirs in list(index.conflicts or []):
        path = (ours or theirs or ancestor).path
        del index.conflicts[path]
        conflicts.append(f"{path}{_settle_conflict(repository, index, ancestor, ours, theirs)}")
    return conflicts


def _move_files_named_like_folders(index: Any, head: pygit2.Commit) -> list[str]:
    """Move files whose path is also a folder, as after a rename: git would drop them."""
    sides = [side for three in index.conflicts or [] for side in three[1:] if side]
    folders = {str(above) for entry in [*index, *sides] for above in Path(entry.path).parents}
    conflicts = []
    for entry in [
        each for each in index if each.path in folders and not _is_open_conflict(index, each)
    ]:
        is_ours = entry.path in head.tree and isinstance(head.tree[entry.path], pygit2.Blob)
        index.remove(entry.path)
        conflicts.append(f"{entry.path}{_place_beside_folder(index, entry, is_ours=is_ours)}")
    return conflicts


def _settle_conflict(
    repository: pygit2.Repository, index: Any, ancestor: Any, ours: Any, theirs: Any
) -> str:
    """Put one conflict into the index; describe how it was resolved."""
    entry = ours or theirs
    if entry is None:
        return " (renamed by both sides)"
    if any(indexed.path.startswith(f"{entry.path}/") for indexed in index):
        return _place_beside_folder(index, entry, is_ours=ours is not None)
    if ours and theirs and (text := _marked_text(repository, ancestor, ours, theirs)) is not None:
        entry = pygit2.IndexEntry(entry.path, repository.create_blob(text.encode()), entry.mode)
    index.add(entry)
    if ours is None or theirs is None:
        whose = "what others had accepted" if ours else "yours"
        return f" (deleted or renamed on one side; what is there is {whose})"
    if entry is not ours:
        return ""
    beside = _free_path_beside(index, entry.path, YOURS)
    index.add(pygit2.IndexEntry(beside, theirs.id, theirs.mode))
    return f" (what others had accepted; yours is {beside})"


def _marked_text(
    repository: pygit2.Repository, ancestor: Any, ours: Any, theirs: Any
) -> str | None:
    """Return a text with both versions between conflict marks; None if a version is no text."""
    # If the base is no text, git writes no marks. A zero byte beyond the first 8,000 does not
    # make git treat a file as binary, but it would end the marked text.
    for side in filter(None, (ancestor, ours, theirs)):
        blob = repository[side.id]
        if not isinstance(blob, pygit2.Blob) or blob.is_binary or b"\0" in blob.data:
            return None
    if FileMode.LINK in (ours.mode, theirs.mode):
        return None
    try:
        # The paths of the entries are the labels of the marks.
        accepted = pygit2.IndexEntry(ACCEPTED, ours.id, ours.mode)
        yours = pygit2.IndexEntry(YOURS, theirs.id, theirs.mode)
        return repository.merge_file_from_index(ancestor, accepted, yours).contents
    except UnicodeDecodeError:
        return None


def list_marked_passages(repository: pygit2.Repository, commit: pygit2.Commit) -> Iterator[str]:
    """Yield each text that a merge left with conflict marks: its path and the marked lines.

    Args:
        commit: What a job was handed; only a merge with conflicts has two parents.
    """
    if len(commit.parents) != 2:
        return
    for delta in repository.diff(commit.parents[0], commit).deltas:
        path = delta.new_file.path
        if path not in commit.tree:
            continue
        entry = commit.tree[path]
        if isinstance(entry, pygit2.Blob) and MARKS.search(entry.data):
            lines = entry.data.decode(errors="replace").splitlines()
            yield "\n".join([f"{path}:", *_marked_lines(lines)])


def _marked_lines(lines: list[str]) -> Iterator[str]:
    """Yield the numbered lines of each conflict, as `read_file` shows them."""
    begins = [n for n, line in enumerate(lines) if line == _BEGIN]
    ends = [n for n, line in enumerate(lines) if line == _END]
    shown = {
        n
        for begin, end in zip(begins, ends, strict=False)
        for n in range(max(0, begin - AROUND), min(len(lines), end + AROUND + 1))
    }
    for n in sorted(shown):
        if n - 1 not in shown and n > 0:
            yield "   ..."
        yield f"{n + 1:>6}\t{lines[n]}"


def _is_open_conflict(index: Any, entry: Any) -> bool:
    """Return whether the entry is one side of an unresolved conflict."""
    return index.conflicts is not None and entry.path in index.conflicts


def _place_beside_folder(index: Any, entry: Any, *, is_ours: bool) -> str:
    """Put a file beside the folder that has its name; describe where."""
    beside = _free_path_beside(index, entry.path, ACCEPTED if is_ours else YOURS)
    index.add(pygit2.IndexEntry(beside, entry.id, entry.mode))
    return f" (a folder on one side; the file of the other is {beside})"


def _free_path_beside(index: Any, path: str, whose: str) -> str:
    """Return a free path for a version of a file that cannot keep its own path."""
    beside = f"{path}~{whose}"
    while beside in index:
        beside += "~"
    return beside
