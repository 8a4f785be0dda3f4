"""Recovers a job from its newest intact checkpoint, or from the folder a person edited."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

from temporalio import activity

from activities.checkpoints import CheckpointMissing, Root, diff_files, open_checkpoints, take_edits
from activities.checkpoints.forgotten_records import find_forgotten_record
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_ms,
    activity_schedule_time,
    check_activity_root,
    open_activity_snapshot,
)
from activities.job.checkpoint_fetch import fetch_job
from activities.job.edit_description import describe_edits, name_edited_paths
from activities.job.job_folder import pack_full_job_journal, update_job_folder
from activities.job.plan_and_todo_files import parse_plan, plan_boxes
from activities.job.remarks import add_remarks_to_instructions
from activities.job.snapshot import Snapshot
from activities.job.tool_messages import ERROR_PREFIX
from activities.redaction.credentials import hide_credentials
from activities.redaction.secrets import redact
from activities.redaction.shown_arguments import show_arguments
from activities.runtime.failures import typed_failure, typed_failures
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.steps.call_refs import newest_call_refs
from activities.text.safe_text import replace_surrogates
from activities.toolkit.path_ownership import leave_out_refused_edits, restore_unreadable_files
from activities.toolkit.result_text import result_error_line
from protocol.requests import (
    EmptyReply,
    FolderReply,
    ImportReply,
    JobPosition,
    RecoverReply,
    RecoverRequest,
    TakeFolderRequest,
    WriteErrorRequest,
)
from protocol.scope_ledger import complete_ticked_scope_items

NAMED_PATHS = 8
"""Number of edited paths that the log and the notices name."""


class Recovery:
    """The activities that recover a job, and those for people who work in its folder."""

    def __init__(self, root: Root) -> None:
        self._root = root

    @activity.defn(name="find_checkpoint")
    def find_checkpoint(self, request: RecoverRequest) -> RecoverReply:
        """Return the newest candidate that is complete here or in the remote."""
        with typed_failures(), heartbeats_from_thread():
            check_activity_root(self._root, request.root, request.remote)
            if request.remote:
                fetch_job(self._root, activity_job_id(), request.remote, request.candidates[0])
            with suppress(CheckpointMissing):
                checkpoints = open_checkpoints(self._root, activity_job_id())
                for commit in checkpoints.intact_commits(request.candidates):
                    with suppress(CheckpointMissing):
                        return _recovery_reply(Snapshot.load(checkpoints, commit))
            message = f"None of the job's checkpoints can be found under {self._root.path}"
            if record := find_forgotten_record(self._root, activity_job_id()):
                # The job was forgotten, and Temporal's reset runs it once more.
                message = f"The {record.message}"
            raise typed_failure(
                "Storage",
                f"{message}. Put the folder .longhaul/checkpoints back from a backup, then resume "
                "the job.",
            )

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

    @activity.defn(name="show_folder")
    def show_folder(self, request: JobPosition) -> FolderReply:
        """Bring the whole folder up to the checkpoint, because a person is about to look at it."""
        with typed_failures(), heartbeats_from_thread():
            snapshot = open_activity_snapshot(self._root, request)
            moved = update_job_folder(
                self._root, snapshot.checkpoints, request.commit, activity_schedule_ms(), full=True
            )
            return FolderReply(moved_aside=moved[:20])

    @activity.defn(name="write_error")
    def write_error(self, request: WriteErrorRequest) -> EmptyReply:
        """Write the error to `errors/` of the folder; it is not part of any checkpoint."""
        with typed_failures(), heartbeats_from_thread():
            check_activity_root(self._root, request.root, request.remote)
            folder = self._root.workspace(activity_job_id()) / "errors"
            folder.mkdir(parents=True, exist_ok=True)
            page = folder / f"step_{request.step:05d}.md"
            # Write first what needs no checkpoint: the checkpoint may be what is missing.
            page.write_text(redact(request.text))
            parts = [request.text]
            if request.call is not None:
                parts.append(f"## The call\n\n{_describe_recovery_call(self._root, request)}\n")
            if request.cause:
                parts.append(f"## The cause\n\n{request.cause}\n")
            page.write_text(hide_credentials(redact("\n".join(parts))))
            return EmptyReply()

    @property
    def activities(self) -> list[Callable[..., object]]:
        """All activities of this class."""
        return [self.find_checkpoint, self.take_folder, self.show_folder, self.write_error]


def _describe_recovery_call(root: Root, request: WriteErrorRequest) -> str:
    """Describe the call with its arguments, redacted and cut to a bounded size."""
    assert request.call is not None
    try:
        called = open_activity_snapshot(root, request).tool_call(request.call)["function"]
    except Exception as error:  # reporting must not fail
        return f"It cannot be read: {type(error).__name__}: {error}"
    try:
        arguments = json.loads(called["arguments"])
        listed = show_arguments(arguments)
    except (ValueError, AttributeError):
        listed = show_arguments({"arguments": called["arguments"]})
    lines = [f"- {name}: {value}" for name, value in listed.items()]
    return "\n".join([f"`{called['name']}` with", "", *lines] if lines else [called["name"]])


def _recovery_reply(snapshot: Snapshot) -> RecoverReply:
    """Return where the job continues: within a reply, or after one that may end its phase."""
    reply = RecoverReply(
        commit=snapshot.commit, at=activity_schedule_time(), state=snapshot.state.without_notes()
    )
    strategic = snapshot.state.phase.kind == "strategic"
    reply.handed_over = strategic and snapshot.files.entry("todos.yaml") is not None
    calls, completed = newest_call_refs(snapshot)
    if completed < len(calls) or reply.handed_over:
        reply.calls, reply.next_call = calls, completed
        results = snapshot.conversation.messages(len(snapshot.conversation) - completed)
        for place, result in enumerate(results):
            text = str(result["content"])
            if text.startswith(ERROR_PREFIX):
                reply.failed_call, reply.failure = (
                    place,
                    result_error_line(text.removeprefix(ERROR_PREFIX)),
                )
                break
    return reply
