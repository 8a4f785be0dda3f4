"""Brings a job's folder up to date for a person."""

from __future__ import annotations

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import activity_schedule_ms, open_activity_snapshot
from activities.job.job_folder import update_job_folder
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from protocol.requests import FolderReply, JobPosition


class ShowFolderActivity:
    """The `show_folder` activity."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="show_folder")
    def show_folder(self, request: JobPosition) -> FolderReply:
        """Bring the whole folder up to the checkpoint, because a person is about to look at it."""
        with typed_failures(), heartbeats_from_thread():
            snapshot = open_activity_snapshot(self._root, request)
            moved = update_job_folder(
                self._root, snapshot.checkpoints, request.commit, activity_schedule_ms(), full=True
            )
            return FolderReply(moved_aside=moved[:20])
