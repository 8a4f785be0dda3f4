"""How an activity opens the checkpoint it starts from."""

import time
from functools import partial

from activities.checkpoints import CheckpointMissing, Root, open_checkpoints
from activities.checkpoints.remote_fetch import fetch_remote_checkpoints
from activities.job.checkpoint_push import push_soon
from activities.job.snapshot import Snapshot
from activities.runtime import tracing
from activities.runtime.activity_info import activity_job_id
from activities.runtime.failures import may_retry_activity, typed_failure
from protocol.requests import JobPosition


def check_activity_root(root: Root, root_id: str, remote: str = "") -> None:
    """Refuse a job from another workspaces root, unless a remote connects the two."""
    root.check_presence()
    if root_id != root.id and not remote:
        raise typed_failure(
            "WrongRoot",
            f"This worker serves the workspaces root {root.path} (id {root.id}), the job lives on "
            f"root {root_id}. Give this worker that root (LONGHAUL_WORKSPACES) or another "
            "task queue (LONGHAUL_TASK_QUEUE).",
            retry=may_retry_activity(),
        )


def open_activity_snapshot(root: Root, request: JobPosition) -> Snapshot:
    """Open the request's checkpoint; refuse a job from another root.

    With a remote, a missing checkpoint is fetched, and saved ones are pushed.

    Raises RootError, ApplicationError, CheckpointMissing, RemoteUnavailable, GitNotInstalled.
    """
    check_activity_root(root, request.root, request.remote)
    try:
        snapshot = Snapshot.load(open_checkpoints(root, activity_job_id()), request.commit)
    except CheckpointMissing:
        if not request.remote:
            raise
        snapshot = fetch_snapshot(root, activity_job_id(), request.remote, request.commit)
    if request.remote:
        snapshot.on_save = partial(push_soon, root, request.remote)
    tracing.trace_activity_position(snapshot.config.name, snapshot.state.phase.number, request.step)
    return snapshot


PATIENCE_SECONDS = 5.0
"""Seconds within which the host that made a checkpoint, if alive, has pushed it."""
POLL_SECONDS = 0.1


def fetch_snapshot(root: Root, job: str, url: str, commit: str) -> Snapshot:
    """Fetch a missing checkpoint as soon as the remote has it."""
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

    Raises RemoteUnavailable, GitNotInstalled, OSError.
    """
    checkpoints = open_checkpoints(root, job, create=True)
    damaged = checkpoints.has_commit(newest) and not checkpoints.is_intact(newest)
    fetch_remote_checkpoints(url, job, checkpoints, refetch=damaged)
