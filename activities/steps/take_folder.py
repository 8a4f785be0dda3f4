"""Imports what a person edited in the folder of a paused job."""

from __future__ import annotations

from contextlib import suppress

from temporalio import activity

from activities.checkpoints import (
    Files,
    FilesError,
    PathRefused,
    Root,
    diff_files,
    take_edits,
)
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_time,
    open_activity_snapshot,
)
from activities.job.brief_statements import brief_statements
from activities.job.edit_description import describe_edits, name_edited_paths
from activities.job.job_folder import pack_full_job_journal
from activities.job.remarks import add_remarks_to_instructions
from activities.phases.snapshot_transition import complete_steps_ticked_by_person
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.text.safe_text import replace_surrogates
from activities.toolkit.path_ownership import leave_out_refused_edits, restore_unreadable_files
from protocol.job_state import JobState
from protocol.requests import ImportReply, TakeFolderRequest
from protocol.scope_ledger import Statement
from protocol.short_text import one_line

INSTRUCTIONS = "instructions.md"
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
            changed = {change.path for change in changes}
            if "plan.md" in changed:
                complete_steps_ticked_by_person(snapshot, request.by)
            if INSTRUCTIONS in changed:
                notes += add_items_of_edit(snapshot.state, before, snapshot.files)
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


def add_items_of_edit(state: JobState, before: Files, after: Files) -> list[str]:
    """Add what a person wrote into the instructions to the scope; return notes for people."""
    known = {each.text for each in brief_statements(_instructions(before), INSTRUCTIONS)}
    notes = list[str]()
    for statement in brief_statements(_instructions(after), INSTRUCTIONS):
        if statement.text in known:
            continue
        try:
            item = state.add_item(statement.text, "told")
        except ValueError as full:
            return [*notes, str(full)]
        place = f"{INSTRUCTIONS}:{statement.line}"
        item.statements = [Statement(text=item.text, place=place, paths=list(statement.paths))]
        notes.append(f"{item.id} is added to the scope: {one_line(item.text, 100)}")
    return notes


def _instructions(files: Files) -> str:
    with suppress(FilesError, PathRefused):
        return files.read(INSTRUCTIONS).decode(errors="replace")
    return ""
