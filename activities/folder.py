"""The folder people look at: brought up to date from checkpoints, read back only on `resume`."""

from __future__ import annotations

import logging

from activities.checkpoints import Checkpoints, Root, mend, project
from activities.model.replies import Replies
from activities.opening import job_id, order
from activities.snapshot import Snapshot

log = logging.getLogger("longhaul.folder")


def project_folder(
    root: Root, checkpoints: Checkpoints, commit: str, scheduled: int, *, whole: bool = False
) -> list[str]:
    """Bring the job's folder up to a checkpoint's files.

    Args:
        scheduled: Server-side order of the asking activity; an older one than the last is ignored.
        whole: Compare everything, not only what changed since the last time.

    Returns:
        Files of a person that were in the way, now in lost+found.
    """
    files = Snapshot.load(checkpoints, commit).files
    bring = mend if whole else project
    moved = bring(checkpoints, root, job_id(), files, scheduled)
    for path in moved:
        log.warning("moved to lost+found: %s", path, extra={"job": job_id()})
    return moved


def settle(root: Root, snapshot: Snapshot, tag: str, key: str) -> list[str]:
    """What a phase end does once its checkpoint is made; doing it twice changes nothing.

    Tags the checkpoint, packs the objects, brings the whole folder up to date and drops the
    replies kept for retries that can no longer come.
    """
    checkpoints = snapshot.checkpoints
    checkpoints.tag(tag, snapshot.commit)
    checkpoints.pack()
    moved = project_folder(root, checkpoints, snapshot.commit, order(), whole=True)
    Replies(checkpoints).forget(except_key=key)
    return moved
