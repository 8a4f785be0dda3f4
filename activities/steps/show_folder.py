"""Brings a job's folder up to date for a person."""

from activities.checkpoints import Root
from activities.job.activity_context import open_activity_snapshot
from activities.job.job_folder import update_job_folder
from activities.runtime.activity_info import activity_schedule_ms
from activities.steps.root_activity import thread_activity
from protocol.requests import FolderReply, JobPosition


@thread_activity
def show_folder(root: Root, request: JobPosition) -> FolderReply:
    snapshot = open_activity_snapshot(root, request)
    moved = update_job_folder(
        root, snapshot.checkpoints, request.commit, activity_schedule_ms(), full=True
    )
    return FolderReply(moved_aside=moved[:20])
