"""Tool calls: each tool is an activity of its own name, from one checkpoint to the next."""

from __future__ import annotations

from collections.abc import Callable

from temporalio import activity

from activities import fingerprints
from activities.checkpoints import FilesError, PathRefused, Root, diff
from activities.conversation import tool_result
from activities.failures import typed
from activities.heartbeats import heartbeats_from_thread
from activities.model.prompt import context_tokens
from activities.opening import open_snapshot, scheduled_at
from activities.plain import plain
from activities.plan import boxes, parse_plan
from activities.snapshot import Snapshot
from activities.tools import REGISTRY, Tool
from activities.tools.context import ToolContext, ToolError, no_heartbeat
from activities.tools.offering import not_found_yet
from activities.tools.ownership import in_the_way, refusal
from protocol.requests import ToolReply, ToolRequest
from protocol.scope import follow_boxes

NOT_RUN = "Not run: the call before it ended the reply."


def tool_activities(root: Root) -> list[Callable[[ToolRequest], ToolReply]]:
    """One activity for each tool of the registry, and `deny_call` for calls that are not run."""
    return [_activity(root, entry) for entry in REGISTRY.values()] + [_deny(root)]


def _activity(root: Root, entry: Tool) -> Callable[[ToolRequest], ToolReply]:
    @activity.defn(name=entry.name)
    def run(request: ToolRequest) -> ToolReply:
        with typed(), heartbeats_from_thread():
            return run_tool(open_snapshot(root, request), entry, request, when(request))

    return run


def _deny(root: Root) -> Callable[[ToolRequest], ToolReply]:
    @activity.defn(name="deny_call")
    def deny(request: ToolRequest) -> ToolReply:
        with typed():
            snapshot = open_snapshot(root, request)
            why = request.refusal or NOT_RUN
            return _record(snapshot, request, when(request), snapshot.story("denied"), why, why)

    return deny


def when(request: ToolRequest) -> int:
    """Date of the commit: a local activity takes the last regular one's."""
    return request.at if activity.info().is_local else scheduled_at()


def run_tool(snapshot: Snapshot, entry: Tool, request: ToolRequest, at: int) -> ToolReply:
    """Run one call, or record its answer or refusal, and save the checkpoint."""
    if request.answer is not None:
        story = snapshot.story(f"{entry.name} answered")
        return _record(snapshot, request, at, story, request.answer)
    error = request.refusal
    text = request.refusal or ""
    if error is None:
        raw = snapshot.call(request.call)["function"]["arguments"]
        before, ledger = snapshot.files, snapshot.state.model_copy(deep=True).scope
        story = snapshot.story(entry.name)
        try:
            text = _run(snapshot, entry, raw, request.waited or 0)
        except (ToolError, FilesError, PathRefused) as problem:
            text = error = str(problem)
        else:
            changed = snapshot.note_changes(before)
            story += f" {changed[0]}" if changed else ""
            if "plan.md" in changed:
                follow_boxes(snapshot.state.scope, boxes(parse_plan(snapshot.text("plan.md"))))
            reply = _record(snapshot, request, at, story, text, changed=bool(changed))
            if news := snapshot.state.items_changed_since(ledger):
                reply.scope = news
            return reply
    return _record(snapshot, request, at, snapshot.story(f"{entry.name} refused"), text, error)


def _run(snapshot: Snapshot, entry: Tool, raw_arguments: str, waited: int) -> str:
    state = snapshot.state
    if why := not_found_yet(snapshot.config, state.phase.kind, state.found, entry.name):
        raise ToolError(why)
    local = activity.info().is_local
    context = ToolContext(
        files=snapshot.files,
        reads=snapshot.reads,
        changes=snapshot.changes,
        # A copy, so that a call which fails half way leaves no trace in the state.
        state=state.model_copy(deep=True),
        config=snapshot.config,
        conversation=snapshot.conversation,
        history=snapshot.history,
        heartbeat=no_heartbeat if local else activity.heartbeat,
        waited=waited,
    )
    try:
        text = entry.run(context, raw_arguments)
    except ToolError:
        # What the refusal showed counts as read, or the same edit would be refused again.
        snapshot.reads = context.reads
        raise
    for change in diff(snapshot.files, context.files):
        why = refusal(change.path, state.phase.kind, entry.owns)
        if why or (change.new and change.new.kind != "folder" and (why := in_the_way(change.path))):
            raise ToolError(why)
    snapshot.files = context.files
    snapshot.reads = context.reads
    snapshot.state = context.state
    return text


def _record(
    snapshot: Snapshot,
    request: ToolRequest,
    at: int,
    story: str,
    text: str,
    error: str | None = None,
    *,
    changed: bool = False,
) -> ToolReply:
    content = cut(text, snapshot.config.limits.result_characters)
    snapshot.conversation = snapshot.conversation.append(
        tool_result(request.step, request.call, f"Error: {content}" if error else content),
        *(
            tool_result(request.step, request.call + 1 + n, f"Error: {NOT_RUN}")
            for n in range(request.skip)
        ),
    )
    reply = ToolReply(
        commit=snapshot.save(story, at), at=at, ok=not error, mark=fingerprints.of_text(text)
    )
    if changed:
        reply.changed = True
    reply.context = context_tokens(snapshot)
    if error:
        reply.error_mark = fingerprints.of_error(error)
        reply.error = plain(error.splitlines()[0][:200])
    return reply


def cut(text: str, limit: int) -> str:
    """A result no longer than `limit` characters: the middle gives way to a line that says so."""
    if len(text) <= limit:
        return text
    half = (limit - 200) // 2
    gone = len(text) - 2 * half
    mark = f"\n[TRUNCATED {gone:,} characters; ask for a part: offset and limit, pages, a path]\n"
    return text[:half] + mark + text[-half:]
