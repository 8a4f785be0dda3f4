"""Finds the newest intact checkpoint of a job that has lost one."""

from contextlib import suppress

from activities.checkpoints import CheckpointMissing, Root, open_checkpoints
from activities.checkpoints.forgotten_records import find_forgotten_record
from activities.job.activity_context import check_activity_root, fetch_job
from activities.job.conversation_calls import ERROR_PREFIX, result_error_line
from activities.job.snapshot import Snapshot
from activities.runtime.activity_info import activity_job_id, activity_schedule_seconds
from activities.runtime.failures import typed_failure
from activities.steps.root_activity import thread_activity
from activities.tool_calls.call_refs import newest_call_refs
from protocol.requests import RecoverReply, RecoverRequest


@thread_activity
def find_checkpoint(root: Root, request: RecoverRequest) -> RecoverReply:
    """Return the newest candidate that is complete here or in the remote."""
    check_activity_root(root, request.root, request.remote)
    with suppress(CheckpointMissing):
        if request.remote:
            fetch_job(root, activity_job_id(), request.remote, request.candidates[0])
        checkpoints = open_checkpoints(root, activity_job_id())
        for commit in checkpoints.intact_commits(request.candidates):
            with suppress(CheckpointMissing):
                return _recovery_reply(Snapshot.load(checkpoints, commit))
    message = f"None of the job's checkpoints can be found under {root.path}"
    if record := find_forgotten_record(root, activity_job_id()):
        # The job was forgotten, and Temporal's reset runs it once more.
        message = f"The {record.message}"
    raise typed_failure(
        "Storage",
        f"{message}. Put the folder .longhaul/checkpoints back from a backup, then resume the job.",
    )


def _recovery_reply(snapshot: Snapshot) -> RecoverReply:
    """Return where the job continues: within a reply, or after one that may end its phase."""
    reply = RecoverReply(
        commit=snapshot.commit, at=activity_schedule_seconds(), state=snapshot.state.without_notes()
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
