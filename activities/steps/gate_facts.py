"""Facts for the gates: what a workspace holds, read here, judged in `workflows.gates`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from temporalio import activity

from activities.checkpoints import Files, FilesError, PathRefused, Root
from activities.checkpoints import parse as parts_of
from activities.commands.check_commands import Checks
from activities.job.activity_context import job_id, open_snapshot
from activities.job.done_when import NO_COMMANDS, unmet
from activities.job.plan_file import MAX_FOUND, boxes, parse_plan, parse_todos, unread_headings
from activities.job.snapshot import Snapshot
from activities.phases.predefined import updated_files
from activities.projects.handoff import refusals
from activities.requirements.folder import Unusable
from activities.requirements.store_lifecycle import before_completion
from activities.requirements.tools.outputs import survey
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats_from_thread
from activities.text import fingerprints, tokens
from activities.tool_catalogue import REGISTRY
from activities.toolkit.context import no_heartbeat
from activities.toolkit.equipment import has_tool
from activities.toolkit.errors import ToolError
from protocol.endings import FactsRequest, GateFacts, GateFactsReply
from protocol.scope import only_unticked
from protocol.text import one_line

MAX_NAMED = 30
MOST_SENTENCES = 8
"""Of those that nothing covers; `collect_requirements` lists all."""
MOST_BOXES = 3
MOST_WHY = 2000
"""Characters of one reason why a project cannot take a job's work over."""
MIN_WORDS = 2
"""Words, beside what it names, that an entry of `unresolved` must have to count as a reason."""


def facts_activity(root: Root) -> Callable[[FactsRequest], GateFactsReply]:
    """The `gate_facts` activity."""

    @activity.defn(name="gate_facts")
    def gate_facts(request: FactsRequest) -> GateFactsReply:
        with typed(), heartbeats_from_thread():
            snapshot = open_snapshot(root, request)
            checks = Checks(root, job_id(), snapshot.config)
            facts = read_facts(snapshot, request.call, checks)
            called = _called(snapshot, request.call)
            if called["name"] == "job_complete":
                entries = _arguments(called["name"], called["arguments"])[0].get("unresolved") or []
                before_completion(root, snapshot, facts)
                read_coverage(snapshot, entries, facts)
                facts.unexplained_writes = [
                    name for name in facts.unexplained_writes if not explained(name, name, entries)
                ][:MAX_NAMED]
            return GateFactsReply(facts=facts)

    return gate_facts


def _called(snapshot: Snapshot, call: int | None) -> dict[str, str]:
    """Name and arguments of the call; without one a phase ends that has handed over."""
    if call is None:
        return {"name": "", "arguments": ""}
    function: dict[str, str] = snapshot.call(call)["function"]
    return function


def read_facts(snapshot: Snapshot, call: int | None, checks: Checks | None = None) -> GateFacts:
    """What the gates need to know to judge what would end the phase or the job.

    Args:
        call: Place of the call that would; None where a phase has handed over.
        checks: Runs the command of a todo's `done_when`.
    """
    called = _called(snapshot, call)
    arguments, error = _arguments(called["name"], called["arguments"])
    handed = parse_todos(snapshot.bytes("todos.yaml"))
    written = snapshot.text("plan.md")
    plan = parse_plan(written)
    completes = called["name"] == "todo_complete"
    current = snapshot.state.phase.current if completes else None
    if not has_tool(snapshot.config, "run_command"):
        for todo in handed.todos:
            if todo.done_when and todo.done_when.command:
                todo.done_when, todo.done_when_error = None, NO_COMMANDS
    entries: list[str] = arguments.get("unresolved") or []
    return GateFacts(
        todos_file=handed.status,
        todos_error=handed.error,
        todos_count=handed.count,
        # The entries themselves stay in the checkpoint; what the gate asks of them is small.
        todos=handed.todos[:MAX_FOUND],
        plan_phases=len(plan),
        plan_unboxed=[phase.name[:100] for phase in plan if not phase.boxes][:10],
        plan_unread=[line[:100] for line in unread_headings(written)][:10],
        plan_open=sum(phase.open for phase in plan),
        plan_boxes=[text[:80] for done, text in boxes(plan) if not done][:MOST_BOXES],
        only_unticked=only_unticked(snapshot.state.scope, boxes(plan)),
        plan_steps=len(boxes(plan)),
        updated=updated_files(snapshot),
        unmet=unmet(snapshot.files, current.done_when if current else None, checks),
        unexplained_phases=[
            phase.label
            for phase in plan
            if phase.open and not explained(f"Phase {phase.number}", phase.name, entries)
        ][:MAX_NAMED],
        unexplained_items=[
            item.id
            for item in snapshot.state.open_items
            if not explained(item.id, item.text, entries)
        ][:MAX_NAMED],
        workspace_tokens=tokens.count(snapshot.text("workspace.md")),
        missing_deliverables=_missing(snapshot, arguments.get("deliverables") or []),
        deliverables_fingerprint=_mark(snapshot, arguments.get("deliverables") or [])
        if called["name"] == "job_complete" and not error
        else "",
        handoff=[why[:MOST_WHY] for why in refusals(snapshot)][:MAX_NAMED]
        if called["name"] == "job_complete"
        else [],
        arguments_error=error,
    )


def _mark(snapshot: Snapshot, paths: list[str]) -> str:
    """Fingerprint of what the deliverables hold; for a project's job also of all it hands over."""
    contents = []
    handed_over = [snapshot.link.folder] if snapshot.link else []
    for path in sorted({*paths, *handed_over}):
        with suppress(FilesError, PathRefused):
            raw = snapshot.files.raw(parts_of(path))
            contents.append(f"{path} {raw.id.hex()}" if raw else "")
    return fingerprints.of_result("\n".join(contents))


def read_coverage(snapshot: Snapshot, entries: Sequence[str], facts: GateFacts) -> None:
    """Enter what the requirements of the workspace leave out of its documents."""
    if not has_tool(snapshot.config, "set_sentences_aside"):
        return
    try:
        now = survey(snapshot.files, job_id(), no_heartbeat)
    except Unusable as problem:
        facts.uncovered = [f"{problem}."]
        return
    left = now.coverage.open
    if left:
        count = f"{len(left):,} of {now.coverage.total:,} sentences that say must or should are"
        named = [
            f"{document} {each.id} p.{each.page}: {one_line(each.text, 100)}"
            for document, each in left[:MOST_SENTENCES]
        ]
        facts.uncovered = [f"{count} neither cited nor set aside.", f"{'; '.join(named)}."]
    facts.badly_read = [
        f"{path}: {one_line(why, 300).rstrip('.')}"
        for path, why in now.badly_read.items()
        if not explained(path, path, entries)
    ][:MAX_NAMED]


def _arguments(name: str, raw: str) -> tuple[dict[str, Any], str | None]:
    if not name:
        return {}, None
    try:
        return REGISTRY[name].parse(raw), None
    except ToolError as problem:
        return {}, str(problem)[:500]


def explained(name: str, text: str, entries: Sequence[str]) -> bool:
    """Whether one of the entries names this, and says more of it than its own text."""
    wanted = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
    return any(
        wanted.search(entry)
        and len(re.findall(r"\w{2,}", wanted.sub(" ", entry.replace(text, " ")))) >= MIN_WORDS
        for entry in entries
    )


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
            return _lack_of_folder(snapshot.files, path)
        return None if snapshot.files.read(path) else "is empty"
    except (FilesError, PathRefused) as problem:
        return str(problem)


def _lack_of_folder(files: Files, path: str) -> str | None:
    if not files.children(path):
        return "is an empty folder"
    # A link has a size of its own. Where it leads is not followed: it may be anywhere.
    filled = any(entry.size for entry in files.walk(path))
    return None if filled else "holds nothing but empty files"
