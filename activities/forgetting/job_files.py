"""The files of a job on a workspaces root, and their removal: first renamed, then deleted.

After a kill at any moment the next call continues: the names before deletion are derived from the
original ones.
"""

import os
from contextlib import ExitStack
from pathlib import Path

from activities.checkpoints import Root
from activities.checkpoints.disk_access import fsync_path
from activities.checkpoints.forgotten_records import ForgottenJob, write_forgotten_record
from activities.checkpoints.locks import file_lock
from activities.checkpoints.removal import remove_path
from activities.commands.private_folder import private_path
from activities.projects.project_repository import project_repository_path

WAIT_SECONDS = 20.0
"""How long to wait for a packer or a projection of the job; either may belong to a frozen worker.
"""
LOCKS = ("longhaul-projection.lock", "longhaul-pack.lock")


def job_paths(root: Root, job: str) -> list[Path]:
    """Return all paths that belong to the job alone, repositories first, so that nobody reads half
    a job.
    """
    return [
        root.repository(job),
        project_repository_path(root, job),
        root.workspace(job),
        private_path(root, job),
    ]


def has_job_files(root: Root, job: str) -> bool:
    """Whether anything of the job is on this root."""
    return any(os.path.lexists(path) for path in job_paths(root, job))


def job_lost_found_path(root: Root, job: str) -> str:
    """Return where files of people are kept after removal, relative to the root."""
    folder = root.lost_found(job)
    return str(folder.relative_to(root.path)) if folder.is_dir() else ""


def remove_job_paths(root: Root, record: ForgottenJob) -> None:
    """Remove everything of the job except lost+found, where files of people are.

    Raises:
        OSError: something cannot be removed, or is locked (TimeoutError).
    """
    write_forgotten_record(root, record.model_copy(update={"done": False}))
    with ExitStack() as stack:
        # Wait for the lock here; later callers find nothing to lock.
        repository = root.repository(record.job)
        if repository.is_dir():
            for name in LOCKS:
                stack.enter_context(file_lock(repository / name, seconds=WAIT_SECONDS))
        for path in job_paths(root, record.job):
            _rename_job_files_to_forget(path)
    for path in job_paths(root, record.job):
        remove_path(_forgotten_job_path(path))
    write_forgotten_record(root, record.model_copy(update={"done": True}))


def _rename_job_files_to_forget(path: Path) -> None:
    if os.path.lexists(path):
        remove_path(_forgotten_job_path(path))
        path.rename(_forgotten_job_path(path))
        fsync_path(path.parent)


def _forgotten_job_path(path: Path) -> Path:
    # No job's name begins with a dot, and no lookup of repositories accepts this suffix.
    return path.with_name(f".{path.name}.forgotten")
