"""Checkpoints that another host made, brought from the remote."""

from __future__ import annotations

import time

from activities.checkpoints import CheckpointMissing, Root, open_checkpoints
from activities.checkpoints.remote import fetch
from activities.job.snapshot import Snapshot

PATIENCE = 5.0
"""Seconds within which the host that made a checkpoint, if it is alive, has pushed it."""
POLL = 0.1


def fetched(root: Root, job: str, url: str, commit: str) -> Snapshot:
    """A checkpoint that is not here, as soon as the remote has it.

    Raises:
        CheckpointMissing: it has not, or a part of it is missing.
        RemoteAway, NoGit, OSError.
    """
    checkpoints = open_checkpoints(root, job, create=True)
    until = time.monotonic() + PATIENCE
    while True:
        # A part of it, then: the commit itself is here.
        anew = checkpoints.holds(commit)
        fetch(url, job, checkpoints, anew=anew)
        try:
            return Snapshot.load(checkpoints, commit)
        except CheckpointMissing:
            if anew or time.monotonic() > until:
                raise
        time.sleep(POLL)


def fetch_job(root: Root, job: str, url: str, newest: str) -> None:
    """All that the remote has of a job; also what was here, if its newest checkpoint is damaged.

    Raises:
        RemoteAway, NoGit, OSError.
    """
    checkpoints = open_checkpoints(root, job, create=True)
    damaged = checkpoints.holds(newest) and not checkpoints.is_whole(newest)
    fetch(url, job, checkpoints, anew=damaged)
