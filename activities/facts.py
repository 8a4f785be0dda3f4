"""Facts for the gates: what a workspace holds, read here, judged in `workflows.gates`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from temporalio import activity

from activities import tokens
from activities.checkpoints import FilesError, PathRefused, Root
from activities.failures import typed
from activities.heartbeats import heartbeats_from_thread
from activities.opening import open_snapshot, scheduled_at
from activities.plan import MAX_FOUND, parse_plan, parse_todos
from activities.snapshot import Snapshot
from activities.tools import REGISTRY
from activities.tools.context import ToolError
from protocol.requests import Facts, FactsRequest, GateFacts


def facts_activity(root: Root) -> Callable[[FactsRequest], Facts]:
    """The `gate_facts` activity."""

    @activity.defn(name="gate_facts")
    def gate_facts(request: FactsRequest) -> Facts:
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(root, request)
            return Facts(
                commit=request.commit, at=scheduled_at(), facts=read_facts(snapshot, request.call)
            )

    return gate_facts


def read_facts(snapshot: Snapshot, call: int) -> GateFacts:
    """What the gates need to know to judge one call that would end the phase or the job."""
    called = snapshot.call(call)["function"]
    arguments, error = _arguments(called["name"], called["arguments"])
    handed = parse_todos(snapshot.bytes("todos.yaml"))
    plan = parse_plan(snapshot.text("plan.md"))
    return GateFacts(
        todos_file=handed.status,
        todos_error=handed.error,
        todos_count=handed.count,
        # The entries themselves stay in the checkpoint; what the gate asks of them is small.
        todos=handed.todos[:MAX_FOUND],
        plan_phases=len(plan),
        plan_unboxed=[phase.name[:100] for phase in plan if not phase.boxes][:10],
        plan_open=sum(phase.open for phase in plan),
        workspace_tokens=tokens.count(snapshot.text("workspace.md")),
        missing_deliverables=_missing(snapshot, arguments.get("deliverables") or []),
        arguments_error=error,
    )


def _arguments(name: str, raw: str) -> tuple[dict[str, Any], str | None]:
    try:
        return REGISTRY[name].parse(raw), None
    except ToolError as problem:
        return {}, str(problem)[:500]


def _missing(snapshot: Snapshot, paths: list[str]) -> list[str]:
    """Deliverables that are not there or hold nothing, at most 20, each with what is wrong."""
    return [
        f"{path[:200] or '(empty)'}: {why}" for path in paths if (why := _lack(snapshot, path))
    ][:20]


def _lack(snapshot: Snapshot, path: str) -> str | None:
    try:
        entry = snapshot.files.entry(path)
        if entry is None:
            return "does not exist"
        if not entry.path:
            return "is the whole workspace; name files or folders in it"
        if entry.kind == "folder":
            return None if snapshot.files.children(path) else "is an empty folder"
        return None if snapshot.files.read(path) else "is empty"
    except (FilesError, PathRefused) as problem:
        return str(problem)
