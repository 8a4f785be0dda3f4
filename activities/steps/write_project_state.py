"""Writes the state of a project's units to its state branch."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    check_activity_root,
)
from activities.projects.project_remote import open_remote_project, push_project
from activities.projects.project_state import write_project_units
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from protocol.project_requests import WriteStateRequest
from protocol.requests import CheckpointReply


def write_project_state_activity(root: Root) -> Callable[[WriteStateRequest], CheckpointReply]:
    """Return `write_project_state` for a workspaces root."""

    @activity.defn(name="write_project_state")
    def write_project_state(request: WriteStateRequest) -> CheckpointReply:
        with typed_failures(), heartbeats_from_thread():
            check_activity_root(root, request.root, request.remote)
            repository = open_remote_project(root, activity_job_id(), request.remote, request.state)
            commit = write_project_units(repository, request)
            push_project(repository, activity_job_id(), request.remote)
            return CheckpointReply(commit=commit, at=activity_schedule_time())

    return write_project_state
