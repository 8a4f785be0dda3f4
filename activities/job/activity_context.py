"""How an activity opens the checkpoint it starts from."""

from __future__ import annotations

from functools import partial

from temporalio import activity

from activities.checkpoints import CheckpointMissing, Root, open_checkpoints
from activities.job.fetch import fetch_snapshot
from activities.job.push import push_soon
from activities.job.snapshot import Snapshot
from activities.runtime import tracing
from activities.runtime.failures import may_retry, typed_failure
from protocol.requests import JobPosition


def job_id() -> str:
    """Id of the job at work: the workflow's id."""
    workflow_id = activity.info().workflow_id
    if workflow_id is None:
        raise RuntimeError("this activity was not started by a workflow")
    return workflow_id


def scheduled_at() -> int:
    """When the server scheduled this activity, epoch seconds: the same for every attempt."""
    return int(activity.info().scheduled_time.timestamp())


def attempt_started_ms() -> int:
    """When the server handed this attempt to the worker, in milliseconds."""
    return int(activity.info().started_time.timestamp() * 1000)


def scheduled_ms() -> int:
    """Server-side order of regular activities of a job, in milliseconds."""
    return int(activity.info().scheduled_time.timestamp() * 1000)


def attempt_key() -> str:
    """Key of this activity's outside effects: retries share it; reset and rewind do not."""
    info = activity.info()
    return f"{info.workflow_run_id}.{info.activity_id}"


def check_root(root: Root, root_id: str, remote: str = "") -> None:
    """Refuse a job that lives on another root than this worker's, unless a remote joins them.

    Raises:
        ApplicationError: WrongRoot.
    """
    if root_id != root.id and not remote:
        raise typed_failure(
            "WrongRoot",
            f"This worker serves the workspaces root {root.path} (id {root.id}), the job lives on "
            f"root {root_id}. Give this worker that root (LONGHAUL_WORKSPACES) or another "
            "task queue (LONGHAUL_TASK_QUEUE).",
            retry=may_retry(),
        )


def open_snapshot(root: Root, request: JobPosition) -> Snapshot:
    """Open the request's checkpoint; refuses a job that lives on another root.

    With a remote, one that is not here is fetched, and what is saved goes there.

    Raises:
        ApplicationError: WrongRoot.
        CheckpointMissing: the store does not hold it, nor does the remote.
        RemoteUnavailable, GitNotInstalled: it is not here, and the remote cannot be asked.
    """
    check_root(root, request.root, request.remote)
    try:
        snapshot = Snapshot.load(open_checkpoints(root, job_id()), request.commit)
    except CheckpointMissing:
        if not request.remote:
            raise
        snapshot = fetch_snapshot(root, job_id(), request.remote, request.commit)
    if request.remote:
        snapshot.on_save = partial(push_soon, root, request.remote)
    tracing.note_position(snapshot.config.name, snapshot.state.phase.number, request.step)
    return snapshot
