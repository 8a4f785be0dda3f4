"""One run of a tool under its guards, and what its outcome means for the call."""

from __future__ import annotations

from typing import Any, NamedTuple

from temporalio import activity

from activities.checkpoints import Change, Files, FilesError, PathRefused, diff_files
from activities.checkpoints.checkpoint_errors import FileMissing
from activities.guards.call_guards import CallGuards
from activities.guards.voting import VotingOutcome
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_ms,
)
from activities.job.conversation import Conversation
from activities.job.plan_and_todo_files import parse_plan, plan_step_texts, with_settled_plan
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.phases.snapshot_transition import settle_worked_items
from activities.redaction.shown_arguments import show_arguments
from activities.runtime.failures import (
    is_storage_failure,
    may_retry_activity,
    typed_failure,
)
from activities.stores.store_errors import StoreUnavailableError
from activities.tool_calls.call_result import record_call_result, tool_call_commit_time
from activities.tool_calls.work_seen import note_seen_work
from activities.toolkit.effects import run_tool_once
from activities.toolkit.namesakes import namesakes_note
from activities.toolkit.path_ownership import check_changed_paths, is_system_path
from activities.toolkit.registry import Tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError, Unfinished
from activities.toolkit.tool_offer import deferred_tool_advice
from activities.tools.delegate_tool import CONVERSATION, delegate_call_answer
from protocol.errors import Invalid, Refusal
from protocol.requests import GuardOutcome, ToolReply, ToolRequest, tool_effect_key
from protocol.scope_ledger import vanished_steps
from protocol.short_text import count_noun, first_few, one_line

UNTICKED = (
    "\nTaken back in plan.md: {ticks}. The system ticks a box when a todo that covers it is "
    "completed, or the list of its phase."
)
GONE = (
    "\nNo longer in plan.md, and still owed: {steps}. A todo that names one in `items` covers it; "
    "drop_item(ids, reason) leaves it out."
)
MOST_GONE = 10


class CallRefused(Refusal):
    """A guard or hook refuses the call, or asks a person about it."""

    def __init__(self, outcome: VotingOutcome, *, has_run: bool = False) -> None:
        self.outcome = outcome
        self.has_run = has_run
        """Whether it is about what the tool has changed."""
        super().__init__(f"Refused by {outcome.guard}: {outcome.denied}")


class ToolOutcome(NamedTuple):
    """What a tool that ran left."""

    text: str
    """The result."""
    added: str
    """Text that hooks add to it."""
    files: Files
    """The files as the tool itself left them."""
    command_failure: str
    """What failed in a command, if anything."""


def run_tool(
    snapshot: Snapshot, entry: Tool, request: ToolRequest, guards: CallGuards
) -> ToolReply:
    """Run a call, or record its answer or refusal; one that needs approval is not recorded."""
    if request.answer is not None:
        story = snapshot.commit_message(f"{entry.name} answered")
        return record_call_result(snapshot, request, story, request.answer)
    refused = snapshot.commit_message(f"{entry.name} refused")
    if (why := request.refusal) is not None:
        reopened = snapshot.state.reopen_items(request.reopen)
        reply = record_call_result(snapshot, request, refused, why, failed=True)
        if reopened:
            reply.scope = reopened
        return reply
    raw = snapshot.tool_call(request.call)["function"]["arguments"]
    before, ledger = snapshot.files, [item.model_copy() for item in snapshot.state.scope]
    story = snapshot.commit_message(entry.name)
    try:
        outcome = _run_guarded_tool_call(snapshot, entry, raw, request, guards)
    except CallRefused as refusal:
        report = guards.report_outcome(refusal.outcome)
        if not refusal.outcome.asks:
            why = str(refusal)
            return record_call_result(snapshot, request, refused, why, report, failed=True)
        return _ask_about_tool_call(request, guards, report, has_run=refusal.has_run)
    except Unfinished as unfinished:
        passed = guards.report_outcome().model_dump(exclude_unset=True)
        return ToolReply(
            commit=request.commit,
            at=tool_call_commit_time(request),
            ok=False,
            pending=unfinished.pending,
            **passed,
        )
    except (ToolError, FilesError, PathRefused) as problem:
        why = _failure_text(snapshot, entry, problem, guards)
        failed = snapshot.commit_message(f"{entry.name} failed")
        return record_call_result(
            snapshot, request, failed, why, guards.report_outcome(), failed=True
        )
    if request.helper:
        tree = snapshot.checkpoints.files(request.helper)
        snapshot.keep_helper(request.call, Conversation(tree.subfolder(CONVERSATION)))
    reply = _record_outcome(snapshot, entry, request, story, before, outcome, guards)
    if news := snapshot.state.items_changed_since(ledger):
        reply.scope = news
    return reply


def _record_outcome(
    snapshot: Snapshot,
    entry: Tool,
    request: ToolRequest,
    story: str,
    before: Files,
    outcome: ToolOutcome,
    guards: CallGuards,
) -> ToolReply:
    """Record the result of a call that ran, and what it did."""
    first_path, changes = _record_workspace_changes(snapshot, before, outcome.files)
    raw = snapshot.tool_call(request.call)["function"]["arguments"]
    note_seen_work(
        snapshot.state,
        entry,
        entry.load_arguments(raw),
        changes,
        failed_command=bool(outcome.command_failure),
    )
    paths = [change.path for change in changes]
    unticked = _settle_plan(snapshot) if "plan.md" in paths else ""
    story += f" {first_path}" if first_path else ""
    reply = record_call_result(
        snapshot,
        request,
        story,
        outcome.text + unticked,
        guards.report_outcome(),
        added=outcome.added,
        changed=any(not is_system_path(path) for path in paths),
        polls=entry.polling,
    )
    reply.command_failure = outcome.command_failure
    return reply


def _failure_text(
    snapshot: Snapshot, entry: Tool, problem: ToolError | Invalid, guards: CallGuards
) -> str:
    """Return why a call failed, with what helps the model to make a better one."""
    # An empty error, such as a server's, would look like a result.
    why = str(problem).strip() or f"{entry.name} failed and did not say why."
    if isinstance(problem, FileMissing):
        why += namesakes_note(snapshot.files, problem.path)
    # Without this note an error about rewritten arguments would puzzle the model.
    return f"{why}\n{note}" if (note := guards.rewrite_note) else why


def _record_workspace_changes(
    snapshot: Snapshot, before: Files, tool_files: Files
) -> tuple[str, list[Change]]:
    """Return the first changed path, and the changes that the tool itself made, without hooks."""
    changed = snapshot.record_changes(before)
    return changed[0] if changed else "", list(diff_files(before, tool_files))


def _settle_plan(snapshot: Snapshot) -> str:
    """Set the boxes of a changed plan as the ledger has them; return what the model is told."""
    written = snapshot.files
    snapshot.files, unticked = with_settled_plan(written, snapshot.state.scope)
    snapshot.record_changes(written)
    settle_worked_items(snapshot)
    plan = parse_plan(snapshot.read_text("plan.md"))
    gone = vanished_steps(snapshot.state.scope, plan_step_texts(plan))
    text = ""
    if unticked:
        text += UNTICKED.format(ticks=count_noun(len(unticked), "tick"))
    if gone:
        named = first_few([f"{step.id} {one_line(step.text, 60)}" for step in gone], MOST_GONE)
        text += GONE.format(steps=named)
    return text


def _ask_about_tool_call(
    request: ToolRequest, guards: CallGuards, report: GuardOutcome, *, has_run: bool
) -> ToolReply:
    question = report.model_dump(exclude_unset=True)
    if has_run:
        question["has_run"] = True
    if guards.rewritten_arguments:
        question["rewritten_arguments"] = show_arguments(guards.rewritten_arguments)
    return ToolReply(commit=request.commit, at=tool_call_commit_time(request), ok=False, **question)


def _run_guarded_tool_call(
    snapshot: Snapshot, entry: Tool, raw_arguments: str, request: ToolRequest, guards: CallGuards
) -> ToolOutcome:
    """Run the tool under its guards."""
    state = snapshot.state
    kind = state.phase.kind
    try:
        sent_arguments = entry.load_arguments(raw_arguments)
        entry.check_arguments(sent_arguments)
    except ToolError as error:
        advice = deferred_tool_advice(
            snapshot.config, kind, state.found_tools, state.unused_tools, entry.name
        )
        raise ToolError(" ".join(filter(None, [str(error), advice]))) from None
    points = ("todo_complete",) if entry.name == "todo_complete" else ()
    allowed = (
        VotingOutcome(sent_arguments)
        if request.guards_passed
        else guards.judge_call(entry.name, sent_arguments, *points)
    )
    if allowed.guard:
        raise CallRefused(allowed)
    arguments = allowed.arguments
    context = _tool_context(snapshot, request, guards)
    text = _run_tool_with_typed_failures(entry, context, arguments, snapshot)
    check_changed_paths(
        diff_files(snapshot.files, context.files),
        snapshot.state.phase.kind,
        entry.owns,
        is_shell=entry.group == "shell",
    )
    vote = guards.judge_change(entry.name, arguments, context.files)
    if vote.guard:
        raise CallRefused(vote, has_run=True)
    added, snapshot.files = guards.add_feedback(entry.name, arguments, text, context.files)
    snapshot.reads = context.reads
    snapshot.state = context.state
    for image in context.images:
        snapshot.keep_image(image.data, image.mime, image.pointer, image.tokens)
    note = guards.rewrite_note
    return ToolOutcome(
        f"{note}\n{text}" if note else text, added, context.files, context.command_failure
    )


def _tool_context(snapshot: Snapshot, request: ToolRequest, guards: CallGuards) -> ToolContext:
    return ToolContext(
        files=snapshot.files,
        reads=snapshot.reads,
        changes=snapshot.changes,
        # A copy, so that a call that fails half way leaves the state unchanged.
        state=snapshot.state.deep_copy(),
        config=snapshot.config,
        conversation=snapshot.conversation,
        history=snapshot.history,
        root=guards.root,
        job=activity_job_id(),
        key=request.pending.key if request.pending else _tool_call_key(request),
        pending=request.pending,
        gives_up=request.gives_up,
        activity_id=activity.info().activity_id,
        attempt=activity.info().attempt if snapshot.config.workspace.remote else 1,
        has_run=request.has_run,
        project_id=snapshot.link.id if snapshot.link else "",
        project_link=snapshot.link,
        repository=snapshot.repository,
        earlier_jobs=snapshot.link.earlier_jobs if snapshot.link else (),
        commit=snapshot.commit,
        time_ms=activity_schedule_ms(),
        waited_seconds=request.waited_seconds or 0,
        answer=delegate_call_answer(snapshot.checkpoints.files(request.helper))
        if request.helper
        else "",
    )


def _run_tool_with_typed_failures(
    entry: Tool, context: ToolContext, arguments: dict[str, Any], snapshot: Snapshot
) -> str:
    """Run the tool; turn trouble that the model cannot fix into a typed failure."""
    try:
        return run_tool_once(entry, context, arguments, ResultCache(snapshot.checkpoints.path))
    except (DependencyUnavailable, StoreUnavailableError) as error:
        raise typed_failure("Dependency", str(error), retry=may_retry_activity()) from error
    except OSError as error:
        if is_storage_failure(error):
            raise
        # The tool's own error: a refused connection is no failure of the workspaces root.
        what = f"{type(error).__name__}: {error}"
        raise typed_failure("Unforeseen", what[:1000], retry=may_retry_activity()) from error
    except ToolError:
        # Count what the refusal showed as read, or the same edit would be refused again.
        snapshot.reads = context.reads
        raise


def _tool_call_key(request: ToolRequest) -> str:
    """Return the key of a call's effects outside, the same if it runs again after an approval."""
    run_id = activity.info().workflow_run_id or ""
    return request.effect_key or tool_effect_key(run_id, request.commit, request.call)
