"""Tool calls: each tool is an activity of its own name, from one checkpoint to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from temporalio import activity
from temporalio.common import RawValue

from activities.checkpoints import Files, FilesError, PathRefused, Root, diff
from activities.guards.calls import Guards
from activities.guards.voting import Outcome
from activities.job.activity_context import job_id, open_snapshot, order, scheduled_at
from activities.job.conversation import ERROR, call_id, tool_result
from activities.job.kept_results import KeptResults
from activities.job.plan_file import boxes, parse_plan
from activities.job.snapshot import Snapshot
from activities.model.prompt import context_tokens
from activities.redaction.credentials import hide
from activities.redaction.secrets import redact
from activities.runtime import tracing
from activities.runtime.failures import failure, is_of_store, may_pass, typed
from activities.runtime.heartbeats import heartbeats_from_thread, now_and_then
from activities.steps.show_call import bounded
from activities.stores.errors import StoreAway
from activities.text import fingerprints
from activities.text.plain import cut_middle
from activities.tool_catalogue import REGISTRY
from activities.toolkit import effects
from activities.toolkit.context import ToolContext, no_heartbeat
from activities.toolkit.equipment import toolbox
from activities.toolkit.errors import ToolError, Unfinished, Unreached
from activities.toolkit.ownership import in_the_way, is_system, of_git, refusal
from activities.toolkit.registry import Tool
from activities.toolkit.tool_offer import not_found_yet
from protocol.errors import Refusal
from protocol.requests import GuardOutcome, ToolReply, ToolRequest
from protocol.scope import follow_boxes


def tool_activities(root: Root) -> list[Callable[[ToolRequest], ToolReply]]:
    """One activity for each tool of the registry, and `deny_call` for calls that are not run."""
    return [_activity(root, entry) for entry in REGISTRY.values()] + [_deny(root)]


def remote_activity(root: Root) -> Callable[[Sequence[RawValue]], ToolReply]:
    """The activity of every other name: tools that a job's configuration brings along."""

    @activity.defn(dynamic=True)
    def run(arguments: Sequence[RawValue]) -> ToolReply:
        converter = activity.payload_converter()
        request: ToolRequest = converter.from_payload(arguments[0].payload, ToolRequest)
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(root, request)
            entry = toolbox(snapshot.config).get(name := activity.info().activity_type)
            if entry is None:
                raise RuntimeError(f"this worker has no activity {name}; it may be an older one")
            return _called(root, snapshot, entry, request)

    return run


def _activity(root: Root, entry: Tool) -> Callable[[ToolRequest], ToolReply]:
    @activity.defn(name=entry.name)
    def run(request: ToolRequest) -> ToolReply:
        with typed(), heartbeats_from_thread():
            return _called(root, open_snapshot(root, request), entry, request)

    return run


def _called(root: Root, snapshot: Snapshot, entry: Tool, request: ToolRequest) -> ToolReply:
    tracing.tool(entry.name, call_id(request.step, request.call))
    guards = Guards(root, snapshot, request.approved, request.bypass)
    return run_tool(snapshot, entry, request, when(request), guards)


def _deny(root: Root) -> Callable[[ToolRequest], ToolReply]:
    @activity.defn(name="deny_call")
    def deny(request: ToolRequest) -> ToolReply:
        with typed():
            snapshot = open_snapshot(root, request)
            why = request.refusal or ""
            story = snapshot.story("denied")
            return _record(snapshot, request, when(request), story, why, failed=True)

    return deny


def when(request: ToolRequest) -> int:
    """Date of the commit: a local activity takes the last regular one's."""
    return request.at if activity.info().is_local else scheduled_at()


SAME = "The same result as that of {call} above, to the letter; nothing of it has changed."


class Refused(Refusal):
    """A guard or hook refuses the call, or asks a person about it."""

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        super().__init__(f"Refused by {outcome.guard}: {outcome.denied}")


def run_tool(
    snapshot: Snapshot, entry: Tool, request: ToolRequest, at: int, guards: Guards
) -> ToolReply:
    """Run one call, or record its answer or refusal, and save the checkpoint.

    A call about which a guard asks a person is neither run nor recorded.
    """
    if request.answer is not None:
        story = snapshot.story(f"{entry.name} answered")
        return _record(snapshot, request, at, story, request.answer)
    refused = snapshot.story(f"{entry.name} refused")
    if (why := request.refusal) is not None:
        return _record(snapshot, request, at, refused, why, failed=True)
    raw = snapshot.call(request.call)["function"]["arguments"]
    before, ledger = snapshot.files, [item.model_copy() for item in snapshot.state.scope]
    story = snapshot.story(entry.name)
    try:
        text, added, made, trouble = _run(snapshot, entry, raw, request, guards)
    except Refused as refusal:
        told = guards.report(refusal.outcome)
        if not refusal.outcome.asks:
            return _record(snapshot, request, at, refused, str(refusal), told, failed=True)
        asked = told.model_dump(exclude_unset=True)
        if guards.instead:
            asked["rewritten_arguments"] = bounded(guards.instead)
        return ToolReply(commit=request.commit, at=at, ok=False, **asked)
    except Unfinished as unfinished:
        passed = guards.report().model_dump(exclude_unset=True)
        way = unfinished.pending
        return ToolReply(commit=request.commit, at=at, ok=False, pending=way, **passed)
    except (ToolError, FilesError, PathRefused) as problem:
        # What has no text would pass for a result: a server's error may have none.
        why = str(problem).strip() or f"{entry.name} failed and did not say why."
        if instead := _rewritten(guards):
            # An error of arguments that it never sent says nothing to the model by itself.
            why = f"{why}\n{instead}"
        return _record(snapshot, request, at, refused, why, guards.report(), failed=True)
    changed = snapshot.note_changes(before)
    story += f" {changed[0]}" if changed else ""
    if "plan.md" in changed:
        follow_boxes(snapshot.state.scope, boxes(parse_plan(snapshot.text("plan.md"))))
    # Neither what the system notes beside a call's work is progress of the job, nor what hooks say
    # and write, with the time of day perhaps.
    own = changed if made == snapshot.files else [c.path for c in diff(before, made)]
    reply = _record(
        snapshot,
        request,
        at,
        story,
        text,
        guards.report(),
        added=added,
        changed=any(not is_system(path) for path in own),
        polls=entry.polling,
    )
    reply.command_failure = trouble
    if news := snapshot.state.items_changed_since(ledger):
        reply.scope = news
    return reply


def _run(
    snapshot: Snapshot, entry: Tool, raw_arguments: str, request: ToolRequest, guards: Guards
) -> tuple[str, str, Files, str]:
    """The tool's result, what is added to it, the files as the tool itself left them, and what the
    model has to read of the result before it goes on.
    """
    state = snapshot.state
    kind = state.phase.kind
    if why := not_found_yet(
        snapshot.config, kind, state.found_tools, state.unused_tools, entry.name
    ):
        raise ToolError(why)
    given = entry.given(raw_arguments)
    entry.check(given)
    points = ("todo_complete",) if entry.name == "todo_complete" else ()
    allowed = Outcome(given) if request.guards_passed else guards.before(entry.name, given, *points)
    if allowed.guard:
        raise Refused(allowed)
    arguments = allowed.arguments
    context = _tool_context(snapshot, request, guards)
    text = _reach_typed(entry, context, arguments, snapshot)
    _check_changes(entry, snapshot, context)
    outcome = guards.change(entry.name, arguments, context.files)
    if outcome.guard:
        raise Refused(outcome)
    added, snapshot.files = guards.feedback(entry.name, arguments, text, context.files)
    snapshot.reads = context.reads
    snapshot.state = context.state
    told = _rewritten(guards)
    return f"{told}\n{text}" if told else text, added, context.files, context.trouble


def _tool_context(snapshot: Snapshot, request: ToolRequest, guards: Guards) -> ToolContext:
    local = activity.info().is_local
    return ToolContext(
        files=snapshot.files,
        reads=snapshot.reads,
        changes=snapshot.changes,
        # A copy, so that a call which fails half way leaves no trace in the state.
        state=snapshot.state.deep_copy(),
        config=snapshot.config,
        conversation=snapshot.conversation,
        history=snapshot.history,
        root=guards.root,
        job=job_id(),
        key=request.pending.key if request.pending else _call_key(request),
        pending=request.pending,
        gives_up=request.gives_up,
        attempt=activity.info().attempt if snapshot.config.workspace.remote else 1,
        project=snapshot.link.id if snapshot.link else "",
        link=snapshot.link,
        before=snapshot.link.earlier_jobs if snapshot.link else (),
        commit=snapshot.commit,
        at=order(),
        heartbeat=no_heartbeat if local else now_and_then(),
        waited=request.waited_seconds or 0,
    )


def _reach_typed(
    entry: Tool, context: ToolContext, arguments: dict[str, Any], snapshot: Snapshot
) -> str:
    """Run the tool; trouble that the model cannot mend becomes a typed failure."""
    try:
        return _reach(entry, context, arguments, snapshot)
    except (Unreached, StoreAway) as error:
        raise failure("Dependency", str(error), retry=may_pass()) from error
    except OSError as error:
        if is_of_store(error):
            raise
        # The tool's own: a connection that is refused is no trouble of the workspaces root.
        what = f"{type(error).__name__}: {error}"
        raise failure("Unforeseen", what[:1000], retry=may_pass()) from error
    except ToolError:
        # What the refusal showed counts as read, or the same edit would be refused again.
        snapshot.reads = context.reads
        raise


def _check_changes(entry: Tool, snapshot: Snapshot, context: ToolContext) -> None:
    """Raise ToolError where the tool changed what it may not."""
    for change in diff(snapshot.files, context.files):
        why = refusal(change.path, snapshot.state.phase.kind, entry.owns)
        if change.new and change.new.kind != "folder":
            why = why or in_the_way(change.path)
            if entry.group != "shell":
                why = why or of_git(change.path)
        if why:
            raise ToolError(why)


def _call_key(request: ToolRequest) -> str:
    """Key of a call's outside effects: all activities that run it share it, as it is run anew when
    a person approved it or mended what it failed of; reset and rewind do not.
    """
    return f"{activity.info().workflow_run_id}.{request.commit[:12]}.{request.call}"


def _reach(entry: Tool, context: ToolContext, arguments: dict[str, Any], snapshot: Snapshot) -> str:
    """Run the tool; what reaches outside never again once it was finished."""
    if not entry.at_most_once and entry.effect != "outside":
        return entry.run(context, arguments)
    kept, key, pending = KeptResults(snapshot.checkpoints.path), context.key, context.pending
    if pending:
        key = f"{context.key}.{pending.turn}"
        before = f"{context.key}.{pending.turn - 1}" if pending.turn > 1 else context.key
        held = effects.held_by(kept, before)
        if held is None and not pending.task:
            raise ToolError(effects.MAY_HAVE_HAPPENED)
        context.held = held or {}

    def run() -> tuple[str, Files]:
        text = hide(entry.run(context, arguments))
        return text, context.files

    text, context.files = effects.once(
        kept,
        key,
        context.files,
        run,
        # To ask how a task stands changes nothing.
        repeatable=not entry.at_most_once or bool(pending and pending.task),
        attempt=context.attempt,
    )
    return text


def _rewritten(guards: Guards) -> str:
    """Tells the model what was run instead of what it sent."""
    if not guards.rewritten:
        return ""
    told = "; ".join(f"{name} is {str(value)[:200]!r}" for name, value in guards.instead.items())
    return f"[{', '.join(guards.rewritten)} rewrote the call: {told}]"


def _record(
    snapshot: Snapshot,
    request: ToolRequest,
    at: int,
    story: str,
    text: str,
    told: GuardOutcome | None = None,
    *,
    failed: bool = False,
    added: str = "",
    changed: bool = False,
    polls: bool = False,
) -> ToolReply:
    # A server's answer, say, may hold the key that it was given.
    text = hide(text)
    content = cut(text + hide(added), snapshot.config.limits.result_characters)
    if not failed and (
        same := snapshot.conversation.same_result(content, snapshot.view.whole_from)
    ):
        content = SAME.format(call=same)
    snapshot.conversation = snapshot.conversation.append(
        tool_result(request.step, request.call, f"{ERROR}{content}" if failed else content)
    )
    guarded = told.model_dump(exclude_unset=True) if told else {}
    commit = snapshot.save(story, at)
    mark = fingerprints.of_poll(text) if polls else fingerprints.of_result(text)
    reply = ToolReply(commit=commit, at=at, ok=not failed, fingerprint=mark, **guarded)
    if changed:
        reply.changed = True
    reply.context = context_tokens(snapshot)
    if failed:
        reply.error_fingerprint = fingerprints.of_error(text)
        reply.error = error_line(text)
    return reply


def error_line(text: str) -> str:
    """What workflow code knows of an error."""
    return redact(text.splitlines()[0][:5000])[:200]


def cut(text: str, limit: int) -> str:
    """A result no longer than `limit` characters: the middle gives way to a line that says so."""
    if len(text) <= limit:
        return text
    mark = "[TRUNCATED {gone} characters; ask for a part: offset, limit and column, pages, a path]"
    return cut_middle(text, limit - 200, mark)
