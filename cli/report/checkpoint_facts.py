"""Facts from a job's checkpoints: its phases, the plans they began with, its deliverables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from activities.checkpoints import Checkpoints, Files, FilesError, LogEntry, PathRefused
from activities.job.plan_and_todo_files import parse_plan
from activities.job.snapshot import Snapshot
from activities.job.unresolved import is_named_unresolved
from activities.redaction.secrets import redact
from activities.tools.shell_command import LOG
from cli.job_files.checkpoint_reader import read_checkpoint_steps
from cli.report.failing_commands import failing_commands
from cli.report.report_content import MOST_LISTED, MOST_PHASES, Deliverable
from config.schema.agent_sections import Verifier
from config.yaml_files import YAML
from protocol.endings import JobResult
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.short_text import one_line

COMPLETION = "output/completion.json"
FORKED = "forked from "
PAGE_BYTES = 500_000


@dataclass(frozen=True)
class ArchivePage:
    """A phase's archive page."""

    outcome: str
    undone: bool = False
    issue: str = ""
    by: str = ""
    todos: int = 0
    """Without those that were not needed."""
    done: int = 0
    not_needed: int = 0
    completed: frozenset[int] = frozenset()
    """Ids of the todos that are done."""


@dataclass(frozen=True)
class PhaseStart:
    """A phase at its start."""

    phase: Phase
    timestamp: int
    """Epoch seconds."""
    plan: frozenset[str]
    """Names of phases and texts of boxes in `plan.md` at that time."""


@dataclass
class CheckpointFacts:
    """Facts read from a job's checkpoints."""

    state: JobState
    model: str
    agent: str
    project: str
    """Id of the project it works for, or empty."""
    phase_starts: list[PhaseStart]
    """The newest phases, oldest first."""
    omitted_phases: int
    """Number of earlier phases left out."""
    first_at: int
    """Time of the job's first checkpoint; epoch seconds, like `last_at`."""
    last_at: int
    replies: int
    """Number of model calls in the log."""
    pages: dict[int, ArchivePage]
    result: JobResult | None
    files: Files
    plan: frozenset[str] = frozenset()
    """Of the newest checkpoint."""
    verifiers: list[Verifier] = field(default_factory=list)
    failing: list[str] = field(default_factory=list)
    """Commands whose last run failed."""
    open_plan_phases: list[tuple[str, str]] = field(default_factory=list)
    """Open phases of the plan: label, such as `Phase 2`, and name."""
    breaks_off: bool = False
    """Whether earlier steps are damaged or missing here."""


def read_checkpoints(store: Checkpoints, commit: str) -> CheckpointFacts:
    """Read a job's checkpoints up to a commit.

    Raises:
        UserError: The commit is not in this store.
        CheckpointMissing: A part of it is not in this store.
    """
    log = _checkpoint_log_since_fork(full_log := read_checkpoint_steps(store, commit))
    newest = Snapshot.load(store, commit)
    starts = set(store.tags().values())
    starts_of_phases = [
        entry for entry in log if entry.id in starts and " begins: " in entry.message
    ]
    known: dict[str, frozenset[str]] = {}
    plan = parse_plan(newest.read_text("plan.md"))
    return CheckpointFacts(
        state=newest.state,
        model=newest.config.model.name,
        agent=newest.config.name,
        project=newest.link.id if newest.link else "",
        phase_starts=[
            _checkpoint_phase_start(store, entry, known)
            for entry in starts_of_phases[-MOST_PHASES:]
        ],
        omitted_phases=max(0, len(starts_of_phases) - MOST_PHASES),
        first_at=log[0].timestamp,
        last_at=log[-1].timestamp,
        replies=sum(" · reply: " in entry.message for entry in log),
        pages=_checkpoint_archive_pages(newest.files),
        result=_checkpoint_result(newest),
        files=newest.files,
        verifiers=newest.config.verifiers,
        failing=failing_commands(newest.read_text(LOG)),
        plan=_checkpoint_plan_lines(newest.read_text("plan.md")),
        open_plan_phases=[(f"Phase {phase.number}", phase.name) for phase in plan if phase.is_open],
        breaks_off=log[0] is full_log[0] and store.lacks_parent(log[0].id),
    )


def list_checkpoint_deliverables(
    facts: CheckpointFacts, result: dict[str, Any] | None
) -> list[Deliverable]:
    """Inspect the declared deliverables; for a running job, the files in `output/`."""
    if result and result.get("deliverables"):
        paths = [str(path) for path in result["deliverables"]]
    else:
        has_output = facts.files.entry("output") is not None
        entries = facts.files.walk("output") if has_output else iter(())
        paths = [
            entry.path for entry in entries if entry.kind == "file" and entry.path != COMPLETION
        ]
    return [_checkpoint_deliverable(facts.files, path) for path in paths[:MOST_LISTED]]


def unexplained_open_work(facts: CheckpointFacts, result: dict[str, Any]) -> list[str]:
    """Return what was open when a job completed and is not explained in `unresolved`."""
    entries = [str(entry) for entry in result.get("unresolved") or []]
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
        for deliverable in list_checkpoint_deliverables(facts, result)
        if deliverable.problem
    ]
    return [*phases, *items, *missing]


def _checkpoint_log_since_fork(log: list[LogEntry]) -> list[LogEntry]:
    """Return the log from the start of a fork on; earlier steps belong to another job."""
    begins = [place for place, entry in enumerate(log) if entry.message.startswith(FORKED)]
    return log[begins[-1] :] if begins else log


def _checkpoint_phase_start(
    store: Checkpoints, entry: LogEntry, known: dict[str, frozenset[str]]
) -> PhaseStart:
    snapshot = Snapshot.load(store, entry.id)
    plan_entry = snapshot.files.entry("plan.md")
    key = plan_entry.id if plan_entry and plan_entry.kind == "file" else ""
    if key not in known:
        known[key] = _checkpoint_plan_lines(snapshot.read_text("plan.md")) if key else frozenset()
    return PhaseStart(snapshot.state.phase, entry.timestamp, known[key])


def _checkpoint_plan_lines(plan: str) -> frozenset[str]:
    # Redact before splitting: a cut or lower-cased credential would not be recognised.
    phases = parse_plan(redact(plan))
    names = [f"phase {phase.name}" for phase in phases]
    boxes = [text for each in phases for _, text in each.boxes]
    return frozenset(one_line(text, 200) for text in [*names, *boxes])


def _checkpoint_archive_pages(files: Files) -> dict[int, ArchivePage]:
    """Return archive pages by phase number, without those of phases that have not ended."""
    pages: dict[int, ArchivePage] = {}
    if files.entry("archive") is None:
        return pages
    entries = [entry for entry in files.children("archive") if entry.path.endswith(".yaml")]
    for entry in entries[-MOST_PHASES:]:
        number = entry.path.removeprefix("archive/phase_").removesuffix(".yaml")
        if not number.isdecimal() or entry.size > PAGE_BYTES:
            continue
        try:
            data = yaml.load(files.read(entry.path).decode(), YAML)
        except (ValueError, yaml.YAMLError):
            continue
        if isinstance(data, dict) and isinstance(data.get("outcome"), str):
            todos = [todo for todo in data.get("todos") or [] if isinstance(todo, dict)]
            unneeded = sum(todo.get("status") == "not needed" for todo in todos)
            pages[int(number)] = ArchivePage(
                data["outcome"],
                undone=data.get("undone") is True,
                issue=str(data.get("issue") or ""),
                by=str(data.get("by") or ""),
                todos=len(todos) - unneeded,
                done=sum(todo.get("status") == "completed" for todo in todos),
                not_needed=unneeded,
                completed=frozenset(
                    todo["id"]
                    for todo in todos
                    if todo.get("status") == "completed" and isinstance(todo.get("id"), int)
                ),
            )
    return pages


def _checkpoint_result(snapshot: Snapshot) -> JobResult | None:
    try:
        return JobResult.model_validate_json(snapshot.read_text(COMPLETION))
    except ValueError:
        return None


def _checkpoint_deliverable(files: Files, path: str) -> Deliverable:
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
