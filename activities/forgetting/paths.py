"""What a job has on a workspaces root, and how it goes: out of sight first, then for good.

Killed at any moment, the next call goes on: each name that a thing is given before it is removed
follows from its own.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from activities.checkpoints import Root
from activities.checkpoints.forgotten import Record, keep
from activities.checkpoints.locks import locked, sync
from activities.checkpoints.removal import remove
from activities.commands.private import private_place
from activities.projects.repository import repository_path

WAIT_SECONDS = 20.0
"""For whoever packs a job's repository or brings its folder up to date; a frozen worker may."""
LOCKS = ("longhaul-projection.lock", "longhaul-pack.lock")


def places(root: Root, job: str) -> list[Path]:
    """Everything that is a job's alone: repositories first, so that nobody finds half of it."""
    return [
        root.repository(job),
        repository_path(root, job),
        root.workspace(job),
        private_place(root, job),
    ]


def is_there(root: Root, job: str) -> bool:
    """Whether anything of the job is on this root."""
    return any(os.path.lexists(path) for path in places(root, job))


def lost_found(root: Root, job: str) -> str:
    """Where files that a person had put into the workspace stay, relative to the root."""
    folder = root.lost_found(job)
    return str(folder.relative_to(root.path)) if folder.is_dir() else ""


def remove_all(root: Root, record: Record) -> None:
    """Removes it; what people had put there by hand, in lost+found, stays.

    Raises:
        OSError: it cannot be removed, or is locked (TimeoutError).
    """
    keep(root, record.model_copy(update={"done": False}))
    with ExitStack() as stack:
        # Waited for here, and whoever comes later finds no lock to take.
        repository = root.repository(record.job)
        if repository.is_dir():
            for name in LOCKS:
                stack.enter_context(locked(repository / name, seconds=WAIT_SECONDS))
        for path in places(root, record.job):
            _put_aside(path)
    for path in places(root, record.job):
        remove(_aside(path))
    keep(root, record.model_copy(update={"done": True}))


def _put_aside(path: Path) -> None:
    if os.path.lexists(path):
        remove(_aside(path))
        path.rename(_aside(path))
        sync(path.parent)


def _aside(path: Path) -> Path:
    # No name of a job's begins with a dot, and no repository's is found by this ending.
    return path.with_name(f".{path.name}.forgotten")
