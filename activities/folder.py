"""The folder people look at: brought up to date from checkpoints, read back only on `resume`."""

from __future__ import annotations

import logging

import pygit2

from activities.checkpoints import Checkpoints, Root, mend, project
from activities.model.replies import Replies
from activities.opening import job_id, order
from activities.plain import plain
from activities.snapshot import Snapshot

log = logging.getLogger("longhaul.folder")

PATIENCE = 20.0
"""Seconds to wait for another projection of the folder where it must be up to date."""


def project_folder(
    root: Root,
    checkpoints: Checkpoints,
    commit: str,
    scheduled: int,
    *,
    whole: bool = False,
    wait: float = PATIENCE,
) -> list[str]:
    """Bring the job's folder up to a checkpoint's files.

    Args:
        scheduled: Server-side order of the asking activity; an older one than the last is ignored.
        whole: Compare everything, not only what changed since the last time.
        wait: Seconds to wait for another projection of the folder.

    Returns:
        Files of a person that were in the way, now in lost+found.

    Raises:
        OSError: the folder cannot be written, or is locked (TimeoutError).
    """
    files = Snapshot.load(checkpoints, commit).files
    bring = mend if whole else project
    moved = bring(checkpoints, root, job_id(), files, scheduled, wait=wait)
    named = [plain(path) for path in moved]
    for path in named:
        log.warning("moved to lost+found: %s", path, extra={"job": job_id()})
    return named


def follow(root: Root, checkpoints: Checkpoints, commit: str, scheduled: int) -> None:
    """`project_folder` in passing: a folder that cannot be brought up to date now lags behind.

    A worker that is frozen while it holds the folder must not cost others their step.
    """
    try:
        project_folder(root, checkpoints, commit, scheduled, wait=0)
    except (OSError, pygit2.GitError) as error:
        log.warning("the folder lags behind: %s", error, extra={"job": job_id()})


def settle(root: Root, snapshot: Snapshot, tag: str, key: str, *, last: bool = False) -> list[str]:
    """What a phase end does once its checkpoint is made; doing it twice changes nothing.

    Tags the checkpoint, packs the objects, brings the whole folder up to date and drops the
    replies kept for retries that can no longer come. What a frozen worker holds is left to the
    next phase end; only at the `last` one the folder must be right.
    """
    checkpoints = snapshot.checkpoints
    checkpoints.tag(tag, snapshot.commit)
    moved: list[str] = []
    try:
        checkpoints.pack()
    except TimeoutError as error:
        log.warning("not packed: %s", error, extra={"job": job_id()})
    try:
        wait = PATIENCE if last else 1
        moved = project_folder(root, checkpoints, snapshot.commit, order(), whole=True, wait=wait)
    except TimeoutError as error:
        if last:
            raise
        log.warning("the folder lags behind: %s", error, extra={"job": job_id()})
    Replies(checkpoints).forget(except_key=key)
    return moved
