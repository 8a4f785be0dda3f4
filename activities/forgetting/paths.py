"""What a job has on a workspaces root, and how it goes: out of sight first, then for good.

Killed at any moment, the next call goes on: each name that a thing is given before it is removed
follows from its own.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from activities.checkpoints import Root
from activities.checkpoints.forgotten import ForgottenJob, write_record
from activities.checkpoints.locks import file_lock, fsync_path
from activities.checkpoints.removal import remove_path
from activities.commands.private_folder import private_path
from activities.projects.repository import repository_path

WAIT_SECONDS = 20.0
"""For whoever packs a job's repository or brings its folder up to date; a frozen worker may."""
LOCKS = ("longhaul-projection.lock", "longhaul-pack.lock")


def job_paths(root: Root, job: str) -> list[Path]:
    """Everything that is a job's alone: repositories first, so that nobody finds half of it."""
    return [
        root.repository(job),
        repository_path(root, job),
        root.workspace(job),
        private_path(root, job),
    ]


def exists_on_root(root: Root, job: str) -> bool:
    """Whether anything of the job is on this root."""
    return any(os.path.lexists(path) for path in job_paths(root, job))


def lost_found_path(root: Root, job: str) -> str:
    """Where files that a person had put into the workspace stay, relative to the root."""
    folder = root.lost_found(job)
    return str(folder.relative_to(root.path)) if folder.is_dir() else ""


def remove_all(root: Root, record: ForgottenJob) -> None:
    """Removes it; what people had put there by hand, in lost+found, stays.

    Raises:
        OSError: it cannot be removed, or is locked (TimeoutError).
    """
    write_record(root, record.model_copy(update={"done": False}))
    with ExitStack() as stack:
        # Waited for here, and whoever comes later finds no lock to take.
        repository = root.repository(record.job)
        if repository.is_dir():
            for name in LOCKS:
                stack.enter_context(file_lock(repository / name, seconds=WAIT_SECONDS))
        for path in job_paths(root, record.job):
            _put_aside(path)
    for path in job_paths(root, record.job):
        remove_path(_aside_path(path))
    write_record(root, record.model_copy(update={"done": True}))


def _put_aside(path: Path) -> None:
    if os.path.lexists(path):
        remove_path(_aside_path(path))
        path.rename(_aside_path(path))
        fsync_path(path.parent)


def _aside_path(path: Path) -> Path:
    # No name of a job's begins with a dot, and no repository's is found by this ending.
    return path.with_name(f".{path.name}.forgotten")
