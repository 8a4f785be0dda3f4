"""Todos that ask for a change of a file: a change in the running phase shows them as done."""

from __future__ import annotations

from activities.checkpoints import Files, parse_path
from activities.job.snapshot import Snapshot


def changed_todo_files(snapshot: Snapshot) -> list[str]:
    """Return files that open todos update and that changed in the running phase."""
    phase = snapshot.state.phase
    paths = dict.fromkeys(todo.updates for todo in phase.open_todos if todo.updates)
    return [path for path in paths if _step_that_changed_file(snapshot.changes, path) > phase.since]


def _step_that_changed_file(changes: Files, path: str) -> int:
    """Return the step that last changed a path; 0 if none has."""
    raw = changes.tree_entry(parse_path(path))
    return int(changes.store.read(raw.id)) if raw else 0
