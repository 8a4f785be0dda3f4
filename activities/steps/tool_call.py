"""Tool calls: each tool is an activity of its own name, from one checkpoint to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from temporalio import activity
from temporalio.common import RawValue

from activities.checkpoints import Files, FilesError, PathRefused, Root, diff_files
from activities.checkpoints.checkpoint_errors import FileMissing
from activities.guards.call_guards import CallGuards
from activities.guards.voting import VotingOutcome
from activities.job.activity_context import (
    activity_job_id,
    activity_schedule_ms,
    activity_schedule_time,
    open_activity_snapshot,
)
from activities.job.conversation import Conversation
from activities.job.conversation_calls import find_same_result
from activities.job.plan_and_todo_files import parse_plan, plan_boxes
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.job.tool_messages import ERROR_PREFIX, tool_call_id, tool_result_message
from activities.model.prompt import count_prompt_tokens
from activities.redaction.credentials import hide_credentials
from activities.redaction.shown_arguments import show_arguments
from activities.runtime import tracing
from activities.runtime.failures import (
    is_storage_failure,
    may_retry_activity,
    typed_failure,
    typed_failures,
)
from activities.runtime.heartbeats import heartbeats_from_thread, throttled_heartbeat
from activities.stores.store_errors import StoreUnavailableError
from activities.text import fingerprints
from activities.tool_catalogue import REGISTRY
from activities.toolkit.agent_tools import agent_tools_by_name
from activities.toolkit.effects import run_tool_once
from activities.toolkit.namesakes import namesakes_note
from activities.toolkit.path_ownership import check_changed_paths, is_system_path
from activities.toolkit.registry import Tool
from activities.toolkit.result_text import result_error_line, truncate_result
from activities.toolkit.tool_context import ToolContext, no_tool_heartbeat
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError, Unfinished
from activities.toolkit.tool_offer import deferred_tool_refusal
from activities.tools.delegate_tool import CONVERSATION, delegate_call_answer
from protocol.errors import Refusal
from protocol.requests import GuardOutcome, ToolReply, ToolRequest, tool_effect_key
from protocol.scope_ledger import complete_ticked_scope_items


def tool_activities(root: Root) -> list[Callable[[ToolRequest], ToolReply]]:
    """Return an activity for each tool of the registry, and `deny_call` for refused calls."""
    return [_tool_activity(root, entry) for entry in REGISTRY.values()] + [
        _deny_tool_call_activity(root)
    ]


def remote_tool_call_activity(root: Root) -> Callable[[Sequence[RawValue]], ToolReply]:
    """Return the dynamic activity, which runs tools that a job's configuration declares."""

    @activity.defn(dynamic=True)
    def run_remote(arguments: Sequence[RawValue]) -> ToolReply:
        converter = activity.payload_converter()
        request: ToolRequest = converter.from_payload(arguments[0].payload, ToolRequest)
        with typed_failures(), heartbeats_from_thread():
            snapshot = open_activity_snapshot(root, request)
            entry = agent_tools_by_name(snapshot.config).get(name := activity.info().activity_type)
            if entry is None:
                raise RuntimeError(
                    f"this worker has no activity {name}; it may be an older one, or its "
                    "LONGHAUL_CONFIG lacks the file of a tool"
                )
            return _run_tool_call_with_guards(root, snapshot, entry, request)

    return run_remote


def _tool_activity(root: Root, entry: Tool) -> Callable[[ToolRequest], ToolReply]:
    @activity.defn(name=entry.name)
    def run_call(request: ToolRequest) -> ToolReply:
        with typed_failures(), heartbeats_from_thread():
            return _run_tool_call_with_guards(
                root, open_activity_snapshot(root, request), entry, request
            )

    return run_call


def _run_tool_call_with_guards(
    root: Root, snapshot: Snapshot, entry: Tool, request: ToolRequest
) -> ToolReply:
    tracing.trace_activity_tool(entry.name, tool_call_id(request.step, request.call))
    guards = CallGuards(root, snapshot, request.approved, request.bypass)
    return run_tool(snapshot, entry, request, tool_call_commit_time(request), guards)


def _deny_tool_call_activity(root: Root) -> Callable[[ToolRequest], ToolReply]:
    @activity.defn(name="deny_call")
    def deny_call(request: ToolRequest) -> ToolReply:
        with typed_failures():
            snapshot = open_activity_snapshot(root, request)
            why = request.refusal or ""
            story = snapshot.commit_message("denied")
            return _record_tool_call_result(
                snapshot, request, tool_call_commit_time(request), story, why, failed=True
            )

    return deny_call


def tool_call_commit_time(request: ToolRequest) -> int:
    """Return the commit's date; a local activity uses that of the last regular one."""
    return request.at if activity.info().is_local else activity_schedule_time()


SAME_RESULT = "The same result as that of {call} above, to the letter; nothing of it has changed."


class CallRefused(Refusal):
    """A guard or hook refuses the call, or asks a person about it."""

    def __init__(self, outcome: VotingOutcome) -> None:
        self.outcome = outcome
        super().__init__(f"Refused by {outcome.guard}: {outcome.denied}")


def run_tool(
    snapshot: Snapshot, entry: Tool, request: ToolRequest, time_ms: int, guards: CallGuards
) -> ToolReply:
    """Run a call, or record its answer or refusal; one that needs approval is not recorded."""
    if request.answer is not None:
        story = snapshot.commit_message(f"{entry.name} answered")
        return _record_tool_call_result(snapshot, request, time_ms, story, request.answer)
    refused = snapshot.commit_message(f"{entry.name} refused")
    if (why := request.refusal) is not None:
        return _record_tool_call_result(snapshot, request, time_ms, refused, why, failed=True)
    raw = snapshot.tool_call(request.call)["function"]["arguments"]
    before, ledger = snapshot.files, [item.model_copy() for item in snapshot.state.scope]
    story = snapshot.commit_message(entry.name)
    try:
        text, added, tool_files, trouble = _run_guarded_tool_call(
            snapshot, entry, raw, request, guards
        )
    except CallRefused as refusal:
        report = guards.report_outcome(refusal.outcome)
        if not refusal.outcome.asks:
            why = str(refusal)
            return _record_tool_call_result(
                snapshot, request, time_ms, refused, why, report, failed=True
            )
        return _ask_about_tool_call(request, time_ms, guards, report)
    except Unfinished as unfinished:
        passed = guards.report_outcome().model_dump(exclude_unset=True)
        way = unfinished.pending
        return ToolReply(commit=request.commit, at=time_ms, ok=False, pending=way, **passed)
    except (ToolError, FilesError, PathRefused) as problem:
        # An empty error, such as a server's, would look like a result.
        why = str(problem).strip() or f"{entry.name} failed and did not say why."
        if isinstance(problem, FileMissing):
            why += namesakes_note(snapshot.files, problem.path)
        if instead := guards.rewrite_note:
            # Without this note an error about rewritten arguments would puzzle the model.
            why = f"{why}\n{instead}"
        failed = snapshot.commit_message(f"{entry.name} failed")
        return _record_tool_call_result(
            snapshot, request, time_ms, failed, why, guards.report_outcome(), failed=True
        )
    if request.helper:
        tree = snapshot.checkpoints.files(request.helper)
        snapshot.keep_helper(request.call, Conversation(tree.subfolder(CONVERSATION)))
    first_path, progress = _record_workspace_changes(snapshot, before, tool_files)
    story += f" {first_path}" if first_path else ""
    reply = _record_tool_call_result(
        snapshot,
        request,
        time_ms,
        story,
        text,
        guards.report_outcome(),
        added=added,
        changed=progress,
        polls=entry.polling,
    )
    reply.command_failure = trouble
    if news := snapshot.state.items_changed_since(ledger):
        reply.scope = news
    return reply


def _record_workspace_changes(
    snapshot: Snapshot, before: Files, tool_files: Files
) -> tuple[str, bool]:
    """Return the first changed path, and whether the tool itself changed files of the work.

    Changes to the system's files, and changes by hooks, do not count as progress.
    """
    changed = snapshot.record_changes(before)
    if "plan.md" in changed:
        complete_ticked_scope_items(
            snapshot.state.scope, plan_boxes(parse_plan(snapshot.read_text("plan.md")))
        )
    by_tool = (
        changed
        if tool_files == snapshot.files
        else [change.path for change in diff_files(before, tool_files)]
    )
    return changed[0] if changed else "", any(not is_system_path(path) for path in by_tool)


def _ask_about_tool_call(
    request: ToolRequest, time_ms: int, guards: CallGuards, report: GuardOutcome
) -> ToolReply:
    question = report.model_dump(exclude_unset=True)
    if guards.rewritten_arguments:
        question["rewritten_arguments"] = show_arguments(guards.rewritten_arguments)
    return ToolReply(commit=request.commit, at=time_ms, ok=False, **question)


def _run_guarded_tool_call(
    snapshot: Snapshot, entry: Tool, raw_arguments: str, request: ToolRequest, guards: CallGuards
) -> tuple[str, str, Files, str]:
    """Run the tool under its guards.

    Returns:
        The result; text that hooks add to it; the files as the tool itself left them; and what
        failed in a command, if anything.
    """
    state = snapshot.state
    kind = state.phase.kind
    if why := deferred_tool_refusal(
        snapshot.config, kind, state.found_tools, state.unused_tools, entry.name
    ):
        raise ToolError(why)
    sent_arguments = entry.load_arguments(raw_arguments)
    entry.check_arguments(sent_arguments)
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
    outcome = guards.judge_change(entry.name, arguments, context.files)
    if outcome.guard:
        raise CallRefused(outcome)
    added, snapshot.files = guards.add_feedback(entry.name, arguments, text, context.files)
    snapshot.reads = context.reads
    snapshot.state = context.state
    for image in context.images:
        snapshot.keep_image(image.data, image.mime, image.pointer, image.tokens)
    note = guards.rewrite_note
    return f"{note}\n{text}" if note else text, added, context.files, context.command_failure


def _tool_context(snapshot: Snapshot, request: ToolRequest, guards: CallGuards) -> ToolContext:
    local = activity.info().is_local
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
        project_id=snapshot.link.id if snapshot.link else "",
        project_link=snapshot.link,
        repository=snapshot.repository,
        earlier_jobs=snapshot.link.earlier_jobs if snapshot.link else (),
        commit=snapshot.commit,
        time_ms=activity_schedule_ms(),
        heartbeat=no_tool_heartbeat if local else throttled_heartbeat(),
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


def _record_tool_call_result(
    snapshot: Snapshot,
    request: ToolRequest,
    time_ms: int,
    story: str,
    text: str,
    report: GuardOutcome | None = None,
    *,
    failed: bool = False,
    added: str = "",
    changed: bool = False,
    polls: bool = False,
) -> ToolReply:
    # A server's answer may contain the key that was sent to it.
    text = hide_credentials(text)
    content = truncate_result(
        text + hide_credentials(added), snapshot.config.limits.result_characters
    )
    if not failed and (
        same := find_same_result(snapshot.conversation, content, snapshot.view.first_uncleared)
    ):
        content = SAME_RESULT.format(call=same)
    snapshot.conversation = snapshot.conversation.append(
        tool_result_message(
            request.step, request.call, f"{ERROR_PREFIX}{content}" if failed else content
        )
    )
    snapshot.append_images()
    guarded = report.model_dump(exclude_unset=True) if report else {}
    commit = snapshot.save(story, time_ms)
    mark = fingerprints.poll_fingerprint(text) if polls else fingerprints.result_fingerprint(text)
    reply = ToolReply(commit=commit, at=time_ms, ok=not failed, fingerprint=mark, **guarded)
    if changed:
        reply.changed = True
    reply.context = count_prompt_tokens(snapshot)
    if failed:
        reply.error_fingerprint = fingerprints.error_fingerprint(text)
        reply.error = result_error_line(text)
    return reply
