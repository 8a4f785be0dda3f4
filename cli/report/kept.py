"""What a job's checkpoints tell: its phases, the plans they began with, what was delivered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import yaml

from activities.checkpoints import Checkpoints, Files, FilesError, LogEntry, PathRefused
from activities.ending.facts import explained
from activities.guards.secrets import redact
from activities.job.snapshot import Snapshot
from activities.plan import parse_plan
from activities.tools.shell import LOG
from cli.inspecting import story
from cli.report.data import MOST_LISTED, MOST_PHASES, Deliverable
from cli.report.runs import failing
from config.files import YAML
from protocol.endings import JobResult
from protocol.state import JobState, Phase
from protocol.text import one_line

COMPLETION = "output/completion.json"
FORKED = "forked from "
PAGE_BYTES = 500_000


@dataclass(frozen=True)
class Page:
    """What an archive page says of a phase."""

    outcome: str
    undone: bool = False
    issue: str = ""
    by: str = ""
    todos: int = 0
    done: int = 0


@dataclass(frozen=True)
class Began:
    """A phase at its start."""

    phase: Phase
    at: int
    """Epoch seconds."""
    plan: frozenset[str]
    """Names of the phases and texts of the boxes in `plan.md` then."""


@dataclass
class Kept:
    """What was read."""

    state: JobState
    model: str
    agent: str
    project: str
    """That it works for, or nothing."""
    began: list[Began]
    """The newest phases, oldest first."""
    left_out: int
    """Earlier phases that are not among them."""
    first_at: int
    """When the job's first checkpoint was made, and its newest; epoch seconds."""
    last_at: int
    replies: int
    """Model calls in the log."""
    pages: dict[int, Page]
    result: JobResult | None
    files: Files
    plan: frozenset[str] = frozenset()
    """Of the newest checkpoint."""
    failing: list[str] = field(default_factory=list)
    """Commands that failed when they were last run."""
    open_in_plan: list[tuple[str, str]] = field(default_factory=list)
    """Open phases of the plan: `Phase 2` and its name."""
    breaks_off: bool = False
    """Whether steps before these are damaged or not here."""


def read(store: Checkpoints, commit: str) -> Kept:
    """Read a job's checkpoints up to a commit.

    Raises:
        Mistake: the commit is not in this store.
        CheckpointMissing: the same of a part of it.
    """
    log = _own(whole := story(store, commit))
    newest = Snapshot.load(store, commit)
    starts = set(store.tags().values())
    begun = [entry for entry in log if entry.id in starts and " begins: " in entry.message]
    known: dict[str, frozenset[str]] = {}
    plan = parse_plan(newest.text("plan.md"))
    return Kept(
        state=newest.state,
        model=newest.config.model.name,
        agent=newest.config.name,
        project=newest.link.id if newest.link else "",
        began=[_began(store, entry, known) for entry in begun[-MOST_PHASES:]],
        left_out=max(0, len(begun) - MOST_PHASES),
        first_at=log[0].at,
        last_at=log[-1].at,
        replies=sum(" · reply: " in entry.message for entry in log),
        pages=_pages(newest.files),
        result=_result(newest),
        files=newest.files,
        failing=failing(newest.text(LOG)),
        plan=_lines(newest.text("plan.md")),
        open_in_plan=[(f"Phase {each.number}", each.name) for each in plan if each.open],
        breaks_off=log[0] is whole[0] and store.breaks_off(log[0].id),
    )


def deliverables(kept: Kept, result: dict[str, Any] | None) -> list[Deliverable]:
    """What the job says it delivered, each looked at; of a running one what is in `output/`."""
    if result and result.get("deliverables"):
        paths = [str(path) for path in result["deliverables"]]
    else:
        there = kept.files.entry("output") is not None
        made = kept.files.walk("output") if there else iter(())
        paths = [one.path for one in made if one.kind == "file" and one.path != COMPLETION]
    return [_deliverable(kept.files, path) for path in paths[:MOST_LISTED]]


def unexplained(kept: Kept, result: dict[str, Any]) -> list[str]:
    """What was open when a job was accepted as complete, and is not named in `unresolved`."""
    entries = [str(entry) for entry in result.get("unresolved") or []]
    phases = [
        f"{label}: {name} is open in plan.md"
        for label, name in kept.open_in_plan
        if not explained(label, name, entries)
    ]
    items = [
        f"item {item.id} is open: {item.text}"
        for item in kept.state.open_items
        if not explained(item.id, item.text, entries)
    ]
    missing = [f"{one.path}: {one.problem}" for one in deliverables(kept, result) if one.problem]
    return [*phases, *items, *missing]


def _own(log: list[LogEntry]) -> list[LogEntry]:
    """The log from where a fork began: what was before is another job's."""
    begins = [place for place, entry in enumerate(log) if entry.message.startswith(FORKED)]
    return log[begins[-1] :] if begins else log


def _began(store: Checkpoints, entry: LogEntry, known: dict[str, frozenset[str]]) -> Began:
    snapshot = Snapshot.load(store, entry.id)
    found = snapshot.files.entry("plan.md")
    key = found.id if found and found.kind == "file" else ""
    if key not in known:
        known[key] = _lines(snapshot.text("plan.md")) if key else frozenset()
    return Began(snapshot.state.phase, entry.at, known[key])


def _lines(plan: str) -> frozenset[str]:
    # As a whole: a credential that was cut, or put into lower case, is not known as one.
    phases = parse_plan(redact(plan))
    names = [f"phase {each.name}" for each in phases]
    boxes = [text for each in phases for _, text in each.boxes]
    return frozenset(one_line(text, 200) for text in [*names, *boxes])


def _pages(files: Files) -> dict[int, Page]:
    """The archive pages by phase number; a list that was only handed over yet is none."""
    found: dict[int, Page] = {}
    if files.entry("archive") is None:
        return found
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
            found[int(number)] = Page(
                data["outcome"],
                undone=data.get("undone") is True,
                issue=str(data.get("issue") or ""),
                by=str(data.get("by") or ""),
                todos=len(todos),
                done=sum(todo.get("status") == "completed" for todo in todos),
            )
    return found


def _result(snapshot: Snapshot) -> JobResult | None:
    try:
        return JobResult.model_validate_json(snapshot.text(COMPLETION))
    except ValueError:
        return None


def _deliverable(files: Files, path: str) -> Deliverable:
    try:
        entry = files.entry(path)
        if entry is None:
            return Deliverable(path=path, files=0, problem="does not exist")
        if entry.kind != "folder":
            size = entry.size
            return Deliverable(path=path, bytes=size, problem="" if size else "is empty")
        inside = [one for one in files.walk(entry.path) if one.kind == "file"]
    except (FilesError, PathRefused) as problem:
        return Deliverable(path=path, files=0, problem=str(problem))
    size = sum(one.size for one in inside)
    return Deliverable(
        path=path, bytes=size, files=len(inside), problem="" if inside else "is an empty folder"
    )
