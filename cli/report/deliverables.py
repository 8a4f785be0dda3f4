"""The deliverables of a job, and what was left open without a reason."""

from __future__ import annotations

from activities.checkpoints import Files, FilesError, PathRefused
from activities.job.unresolved import is_named_unresolved
from cli.report.checkpoint_facts import CheckpointFacts
from cli.report.report_content import MOST_LISTED, Deliverable
from protocol.endings import COMPLETION_FILE, JobResult


def list_deliverables(facts: CheckpointFacts, result: JobResult | None) -> list[Deliverable]:
    """Inspect the declared deliverables; for a running job, the files in `output/`."""
    if result and result.deliverables:
        paths = result.deliverables
    else:
        has_output = facts.files.entry("output") is not None
        entries = facts.files.walk("output") if has_output else iter(())
        paths = [
            entry.path
            for entry in entries
            if entry.kind == "file" and entry.path != COMPLETION_FILE
        ]
    return [_inspect_deliverable(facts.files, path) for path in paths[:MOST_LISTED]]


def unexplained_open_work(facts: CheckpointFacts, result: JobResult | None) -> list[str]:
    """Return what was open when a job completed and is not explained in `unresolved`."""
    entries = result.unresolved if result else []
    phases = [
        f"{label}: {name} is open in plan.md"
        for label, name in facts.open_plan_phases
        if not is_named_unresolved(label, name, entries)
    ]
    items = [
        f"item {item.id} is open: {item.text}"
        for item in facts.state.open_items
        if not is_named_unresolved(item.id, item.text, entries)
    ]
    missing = [
        f"{deliverable.path}: {deliverable.problem}"
        for deliverable in list_deliverables(facts, result)
        if deliverable.problem
    ]
    return [*phases, *items, *missing]


def _inspect_deliverable(files: Files, path: str) -> Deliverable:
    try:
        entry = files.entry(path)
        if entry is None:
            return Deliverable(path=path, files=0, problem="does not exist")
        if entry.kind != "folder":
            size = entry.size
            return Deliverable(path=path, bytes=size, problem="" if size else "is empty")
        inside = [inner for inner in files.walk(entry.path) if inner.kind == "file"]
    except (FilesError, PathRefused) as problem:
        return Deliverable(path=path, files=0, problem=str(problem))
    size = sum(inner.size for inner in inside)
    return Deliverable(
        path=path, bytes=size, files=len(inside), problem="" if inside else "is an empty folder"
    )
