"""Merges the accepted work of a job into the main line of its project."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import activity

from activities.checkpoints import Root, job_folder_name
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    check_activity_root,
)
from activities.projects.project_remote import open_remote_project, push_project
from activities.projects.project_repository import MAIN
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from protocol.project_requests import MergeReply, MergeRequest


def merge_work_activity(root: Root) -> Callable[[MergeRequest], MergeReply]:
    """Return `merge_work` for a workspaces root."""

    @activity.defn(name="merge_work")
    def merge_work(request: MergeRequest) -> MergeReply:
        with typed_failures(), heartbeats_from_thread():
            check_activity_root(root, request.root, request.remote)
            needed = (request.head, request.commit)
            repository = open_remote_project(root, activity_job_id(), request.remote, *needed)
            commit, conflicts = repository.merge(
                request.head, request.commit, request.message, activity_schedule_time()
            )
            if conflicts:
                repository.set_branch(f"jobs/{job_folder_name(request.job)}", commit)
            else:
                repository.set_branch(MAIN, commit)
            push_project(repository, activity_job_id(), request.remote)
            return MergeReply(commit=commit, conflicts=conflicts)

    return merge_work
