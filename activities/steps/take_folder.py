"""Imports what a person edited in the folder of a paused job."""

from __future__ import annotations

from temporalio import activity

from activities.checkpoints import Root, diff_files, take_edits
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    open_activity_snapshot,
)
from activities.job.edit_description import describe_edits, name_edited_paths
from activities.job.job_folder import pack_full_job_journal
from activities.job.plan_and_todo_files import parse_plan, plan_boxes
from activities.job.remarks import add_remarks_to_instructions
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.text.safe_text import replace_surrogates
from activities.toolkit.path_ownership import leave_out_refused_edits, restore_unreadable_files
from protocol.requests import ImportReply, TakeFolderRequest
from protocol.scope_ledger import complete_ticked_scope_items

NAMED_PATHS = 8
"""Number of edited paths that the log and the notices name."""


class TakeFolderActivity:
    """The `take_folder` activity."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="take_folder")
    def take_folder(self, request: TakeFolderRequest) -> ImportReply:
        """Commit the edits that a person made in the folder of a paused job."""
        with typed_failures(), heartbeats_from_thread():
            snapshot = open_activity_snapshot(self._root, request)
            before = snapshot.files
            edited, notes = take_edits(snapshot.checkpoints, self._root, activity_job_id(), before)
            snapshot.files = leave_out_refused_edits(before, edited, notes)
            restore_unreadable_files(snapshot, before, notes)
            add_remarks_to_instructions(snapshot)
            changes = list(diff_files(before, snapshot.files))
            if snapshot.files == before:
                return ImportReply(
                    commit=request.commit, at=activity_schedule_time(), notes=notes[:20]
                )
            snapshot.record_changes(before)
            paths = name_edited_paths(changes, NAMED_PATHS)
            ledger = snapshot.state.model_copy(deep=True)
            complete_ticked_scope_items(
                snapshot.state.scope, plan_boxes(parse_plan(snapshot.read_text("plan.md")))
            )
            timestamp = activity_schedule_time()
            commit = snapshot.save(
                snapshot.commit_message(
                    f"{replace_surrogates(request.by) or 'a person'} edited {paths}"
                ),
                timestamp,
            )
            # Pack here, where the job waits for a person, so that no step is delayed.
            pack_full_job_journal(snapshot.checkpoints, activity_job_id())
            return ImportReply(
                commit=commit,
                at=timestamp,
                notes=notes[:20],
                edits=describe_edits(before, snapshot.files, changes),
                paths=paths,
                scope=snapshot.state.items_changed_since(ledger.scope),
            )
