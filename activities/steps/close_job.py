"""The end of a job: its result, written where people look and returned to Temporal."""

import asyncio
from functools import partial
from typing import Any

from temporalio.exceptions import ApplicationError

from activities.acceptance.contract_rows import job_contract
from activities.acceptance.lost_work import KeptWork
from activities.checkpoints import CheckpointMissing, GitNotInstalled, RemoteUnavailable, Root
from activities.commands.private_folder import remove_private_folders
from activities.job.activity_context import open_activity_snapshot
from activities.job.input_documents import input_document_warnings
from activities.job.job_folder import publish_checkpoint
from activities.job.plan_and_todo_files import with_settled_plan
from activities.job.snapshot import Snapshot
from activities.job.statement_checks import holds_statements
from activities.job.typed_result import read_typed_result
from activities.job.workspace_summary import with_workspace_summary
from activities.phases.archive import archive_page, archive_phase
from activities.phases.predefined_todos import todos_completed_by_job_end
from activities.runtime.activity_info import activity_job_id, activity_schedule_seconds
from activities.source_repository.branch_files import with_branch_files
from activities.source_repository.job_branch import (
    commit_job_branch,
    completed_branch_story,
    finished_work_proof,
    open_branch_repository,
    unfinished_branch_story,
)
from activities.steps.cancel_start import cancel_own_run
from activities.steps.root_activity import coroutine_activity
from activities.tool_catalogue import EXTENSIONS, REGISTRY
from config.schema.agent import ConfigError
from protocol.endings import COMPLETION_FILE, CloseReply, CloseRequest, JobResult
from protocol.publishing import BranchResult
from protocol.short_text import as_sentence

MAX_LISTED = 200

NOT_IN_FILE: Any = {
    "checkpoint": True,
    "tree": True,
    "branch": {"commit"},
    "usage": {
        *("cached_tokens", "written_tokens", "unfinished_tokens"),
        *("unfinished_completion_tokens", "unfinished_cost"),
    },
}
"""Fields that differ between two runs of the same steps: ids, how much of a prompt was cached,
which depends on when a call was repeated, and what was used by replies that broke off.
"""


@coroutine_activity
async def close_job(root: Root, request: CloseRequest) -> CloseReply:
    closed = await asyncio.to_thread(_close_job, root, request)
    if request.request_cancel:
        await cancel_own_run()
    return closed


def _close_job(root: Root, request: CloseRequest) -> CloseReply:
    snapshot = open_activity_snapshot(root, request)
    before = snapshot.files
    ledger = [item.model_copy() for item in snapshot.state.scope]
    _settle_ledger_at_close(snapshot, request)
    result = _job_result_at_close(snapshot, request)
    phase = snapshot.state.phase
    completed = todos_completed_by_job_end(snapshot) if request.status == "completed" else []
    if request.status == "completed":
        phase.close(completed)
    notes = [result.notes]
    for extension in EXTENSIONS:
        result.unresolved += extension.close_job(root, snapshot, request.status)
        notes += extension.completion_notes(snapshot)
    result.notes = "\n".join(filter(None, [*notes, *input_document_warnings(snapshot.files)]))
    if snapshot.repository and not snapshot.link:
        result.branch = _commit_branch_at_close(root, snapshot, request, result)
    page = archive_page(snapshot, "closed", request.reason, result.summary, acts=request.acts)
    snapshot.files = archive_phase(snapshot.files, phase, page)
    snapshot.files = with_workspace_summary(snapshot)
    snapshot.write_system_file(COMPLETION_FILE, _result_file_text(result).encode())
    snapshot.record_changes(before)
    timestamp = activity_schedule_seconds()
    result.checkpoint = snapshot.save(f"phase {phase.number} · job {request.status}", timestamp)
    result.tree = snapshot.comparable_tree
    moved = publish_checkpoint(root, snapshot, request.status, last=True)
    remove_private_folders(root, activity_job_id())
    return CloseReply(
        commit=result.checkpoint,
        at=timestamp,
        result=result,
        scope=snapshot.state.items_changed_since(ledger),
        completed=completed,
        moved_aside=moved,
    )


def _settle_ledger_at_close(snapshot: Snapshot, request: CloseRequest) -> None:
    """Complete what work on the spot completes; what code finds amiss in the end is open again."""
    state, work = snapshot.state, KeptWork(snapshot)
    if request.on_the_spot:
        holds = partial(holds_statements, snapshot.files)
        state.complete_on_the_spot(snapshot.commit, holds=holds)
    for item in state.scope:
        if item.status == "completed" and work.problems(item):
            item.status = "open"
    snapshot.files, _ = with_settled_plan(snapshot.files, state.scope)


def _result_file_text(result: JobResult) -> str:
    """Return the result as its file has it, which is the same in two runs of the same steps."""
    excluded = NOT_IN_FILE if result.result else {**NOT_IN_FILE, "result": True}
    kept = result.model_copy(update={"usage": result.usage.reported})
    return kept.model_dump_json(indent=2, exclude=excluded) + "\n"


def _commit_branch_at_close(
    root: Root, snapshot: Snapshot, request: CloseRequest, result: JobResult
) -> BranchResult | None:
    """Commit the work to a branch, as files too if not pushed; None if there can be none."""
    story = completed_branch_story(snapshot, request.call) or unfinished_branch_story(
        activity_job_id(), [request.reason]
    )
    link = snapshot.repository
    assert link is not None
    try:
        shown = finished_work_proof(root, snapshot, request.call)
        proof = request.proof if request.published else shown.line
        branch = commit_job_branch(root, snapshot, activity_job_id(), request.starts, story, proof)
        branch = branch.model_copy(update={"published": request.published, "proof": proof})
        branch.changed, branch.doubts = shown.changed, shown.doubts
        if branch.commit and not branch.published:
            branch = with_branch_files(
                open_branch_repository(root, snapshot, link), snapshot, branch
            )
    except (
        ConfigError,
        ApplicationError,
        CheckpointMissing,
        GitNotInstalled,
        RemoteUnavailable,
    ) as problem:
        lost = f"The work is in {link.folder}/, and no branch could be made of it: {problem}."
        result.notes = "\n".join(filter(None, [result.notes, lost]))
        return None
    return branch


def _job_result_at_close(snapshot: Snapshot, request: CloseRequest) -> JobResult:
    arguments: dict[str, Any] = {"summary": request.reason}
    if request.call is not None:
        called = snapshot.tool_call(request.call)["function"]
        arguments = REGISTRY["job_complete"].parse(called["arguments"])
        arguments["unresolved"] = arguments["unresolved"] or []
    elif open_items := snapshot.state.open_scope:
        arguments["unresolved"] = [item.line for item in open_items[:MAX_LISTED]]
    typed, lost = read_typed_result(snapshot) if request.status == "completed" else (None, "")
    if lost:
        said = f"The typed result is not handed over: {lost}"
        arguments["notes"] = "\n".join(filter(None, [arguments.get("notes"), said]))
    contract = job_contract(snapshot, arguments.get("unresolved") or [])
    return JobResult(
        status=request.status,
        statements=contract.statements,
        met=contract.met,
        contract=contract.rows,
        result=typed,
        dropped=[
            f"{item.id}: {as_sentence(item.text)} Reason: {item.reason}"
            for item in snapshot.state.scope
            if item.status == "dropped" and not item.is_step
        ][:MAX_LISTED],
        phases=request.phases,
        rewinds=request.rewinds,
        usage=request.usage,
        **arguments,
    )
