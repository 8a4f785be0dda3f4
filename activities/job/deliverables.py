"""Deliverables that a job names when it completes: whether they are there, and a hash of them."""

from __future__ import annotations

from contextlib import suppress

from activities.checkpoints import Files, FilesError, PathRefused
from activities.checkpoints import parse_path as parts_of
from activities.job.snapshot import Snapshot
from activities.text import fingerprints


def fingerprint_deliverables(snapshot: Snapshot, paths: list[str]) -> str:
    """Hash the content of the deliverables and, for a project's job, of its product folder."""
    contents = []
    handed_over = [snapshot.link.folder] if snapshot.link else []
    for path in sorted({*paths, *handed_over}):
        with suppress(FilesError, PathRefused):
            raw = snapshot.files.tree_entry(parts_of(path))
            contents.append(f"{path} {raw.id.hex()}" if raw else "")
    return fingerprints.result_fingerprint("\n".join(contents))


def list_missing_deliverables(snapshot: Snapshot, paths: list[str]) -> list[str]:
    """Return up to 20 deliverables that are missing or empty, each with the problem."""
    return [
        f"{path[:200] or '(empty)'}: {why}"
        for path in paths
        if (why := _deliverable_problem(snapshot, path))
    ][:20]


def _deliverable_problem(snapshot: Snapshot, path: str) -> str | None:
    try:
        entry = snapshot.files.entry(path)
        if entry is None:
            return "does not exist"
        if not entry.path:
            return "is the whole workspace; name files or folders in it"
        if entry.kind == "folder":
            return _deliverable_folder_problem(snapshot.files, path)
        return None if snapshot.files.read(path) else "is empty"
    except (FilesError, PathRefused) as problem:
        return str(problem)


def _deliverable_folder_problem(files: Files, path: str) -> str | None:
    if not files.children(path):
        return "is an empty folder"
    # Links have a size of their own; they are not followed, since they may lead anywhere.
    filled = any(entry.size for entry in files.walk(path))
    return None if filled else "holds nothing but empty files"
