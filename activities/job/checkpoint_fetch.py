"""Fetch checkpoints of another host from the remote."""

from __future__ import annotations

import time

from activities.checkpoints import CheckpointMissing, Root, open_checkpoints
from activities.checkpoints.remote_fetch import fetch_remote_checkpoints
from activities.job.snapshot import Snapshot

PATIENCE_SECONDS = 5.0
"""Seconds within which the host that made a checkpoint, if alive, has pushed it."""
POLL_SECONDS = 0.1


def fetch_snapshot(root: Root, job: str, url: str, commit: str) -> Snapshot:
    """Fetch a missing checkpoint as soon as the remote has it.

    Raises:
        CheckpointMissing: the remote does not have it, or not all of it.
        RemoteUnavailable, GitNotInstalled, OSError.
    """
    checkpoints = open_checkpoints(root, job, create=True)
    until = time.monotonic() + PATIENCE_SECONDS
    while True:
        # The commit itself is here, so a part of it is missing.
        refetch = checkpoints.has_commit(commit)
        fetch_remote_checkpoints(url, job, checkpoints, refetch=refetch)
        try:
            return Snapshot.load(checkpoints, commit)
        except CheckpointMissing:
            if refetch or time.monotonic() > until:
                raise
        time.sleep(POLL_SECONDS)


def fetch_job(root: Root, job: str, url: str, newest: str) -> None:
    """Fetch everything the remote has of a job; existing objects too if its newest checkpoint is
    damaged.

    Raises:
        RemoteUnavailable, GitNotInstalled, OSError.
    """
    checkpoints = open_checkpoints(root, job, create=True)
    damaged = checkpoints.has_commit(newest) and not checkpoints.is_intact(newest)
    fetch_remote_checkpoints(url, job, checkpoints, refetch=damaged)
