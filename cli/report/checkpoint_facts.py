"""Facts from a job's checkpoints: its phases and plans, its deliverables, its failed commands."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field

import yaml
from pydantic import Field, ValidationError

from activities.checkpoints import CheckpointMissing, Checkpoints, Files, LogEntry
from activities.job.commit_messages import adds_reply, begins_fork, begins_phase
from activities.job.plan_and_todo_files import parse_plan
from activities.job.snapshot import Snapshot
from activities.redaction.secrets import redact
from activities.toolkit.path_ownership import is_work_path
from activities.tools.shell_command import LOG
from cli.job_files import checkpoint_reader
from cli.job_files.checkpoint_reader import read_checkpoint_log
from cli.jobs.job_view import JobView
from cli.output import UserError
from cli.report.report_content import MOST_PHASES
from config.schema.work_checks import Verifier
from config.yaml_files import YAML
from protocol.data_model import Data
from protocol.endings import COMPLETION_FILE, JobResult
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.short_text import one_line


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
    has_work: bool = True
    """Whether the job changed files of the work, or had an effect that an item rests on."""
    has_claim: bool = False
    """Whether an item rests on what the agent says that it looked at."""
    breaks_off: bool = False
    """Whether earlier steps are damaged or missing here."""


def collect_checkpoint_facts(store: Checkpoints, commit: str) -> CheckpointFacts:
    """Read a job's checkpoints up to a commit.

    Raises:
        UserError: The commit is not in this store.
        CheckpointMissing: A part of it is not in this store.
    """
    log = _checkpoint_log_since_fork(full_log := read_checkpoint_log(store, commit))
    newest = Snapshot.load(store, commit)
    starts = set(store.tags().values())
    starts_of_phases = [
        entry for entry in log if entry.id in starts and begins_phase(entry.message)
    ]
    known: dict[str, frozenset[str]] = {}
    plan = parse_plan(newest.read_text("plan.md"))
    evidence = [item.evidence for item in newest.state.scope if item.evidence]
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
        replies=sum(adds_reply(entry.message) for entry in log),
        pages=read_archive_pages(newest.files),
        result=_checkpoint_result(newest),
        files=newest.files,
        verifiers=newest.config.verifiers,
        failing=failing_commands(newest.read_text(LOG)),
        plan=_checkpoint_plan_lines(newest.read_text("plan.md")),
        open_plan_phases=[(f"Phase {phase.number}", phase.name) for phase in plan if phase.is_open],
        has_work=any(each.calls or each.kind == "person" for each in evidence)
        or any(is_work_path(entry.path) for entry in newest.changes.walk()),
        has_claim=any(each.claim for each in evidence),
        breaks_off=log[0] is full_log[0] and store.lacks_parent(log[0].id),
    )


def _checkpoint_log_since_fork(log: list[LogEntry]) -> list[LogEntry]:
    """Return the log from the start of a fork on; earlier steps belong to another job."""
    begins = [place for place, entry in enumerate(log) if begins_fork(entry.message)]
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


def _checkpoint_result(snapshot: Snapshot) -> JobResult | None:
    try:
        return JobResult.model_validate_json(snapshot.read_text(COMPLETION_FILE), extra="ignore")
    except ValueError:
        return None


def read_checkpoint_facts(job_id: str, job_view: JobView | None) -> CheckpointFacts:
    places = (
        checkpoint_reader.checkpoint_places_from_status(job_view.status)
        if job_view
        else checkpoint_reader.CheckpointPlaces(None, {})
    )
    store = checkpoint_reader.open_checkpoints_for_reading(job_id, places)
    try:
        return collect_checkpoint_facts(
            store, checkpoint_reader.checkpoint_commit_at(places, store, None)
        )
    except CheckpointMissing as error:
        raise UserError(
            f"a checkpoint of {job_id} is damaged or not in this store: {error}"
        ) from None


PAGE_BYTES = 500_000


class PageTodo(Data):
    """A todo of a phase that has ended."""

    id: int = 0
    status: str = ""


class ArchivePage(Data):
    """A phase's archive page, as far as the report reads it."""

    outcome: str
    undone: bool = False
    issue: str = ""
    by: str = ""
    todos: list[PageTodo] = Field(default_factory=list)

    @property
    def completed(self) -> frozenset[int]:
        """Ids of the todos that are done."""
        return frozenset(todo.id for todo in self.todos if todo.status == "completed")

    @property
    def not_needed(self) -> int:
        return sum(todo.status == "passed over" for todo in self.todos)


def read_archive_pages(files: Files) -> dict[int, ArchivePage]:
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
            pages[int(number)] = ArchivePage.model_validate(data, extra="ignore")
        except (ValueError, ValidationError, yaml.YAMLError):
            continue
    return pages


MOST_LINES = 5000
"""Newest log lines that are read."""
DISPLAY_PROGRAMS = frozenset(
    {":", "[", "cat", "cd", "cut", "echo", "exit", "file", "find", "grep", "head", "less", "ls"}
    | {"mkdir", "printf", "pwd", "sed", "set", "sort", "stat", "tail", "tee", "test", "tree"}
    | {"true", "wc", "which"}
)
"""Programs that show, count or print; their exit code says nothing about a product."""
_SEPARATORS = {";", "&", "&&", "||", "|", ";;", "|&"}


def failing_commands(log: str) -> list[str]:
    """Return commands whose last run failed, such as `make test: exit code 1`.

    Args:
        log: Text of `commands/log.jsonl`. Commands such as `ls` are ignored, since their exit code
            means nothing.
    """
    last: dict[str, str] = {}
    for written in log.rstrip("\n").split("\n")[-MOST_LINES:]:
        try:
            entry = json.loads(written)
            command, code, trouble = entry["command"], entry["exit_code"], entry["trouble"]
        except (ValueError, KeyError, TypeError):
            continue
        ended = trouble or (f"exit code {code}" if code else "")
        last[str(command)] = str(ended)
    return [
        f"{one_line(redact(command), 100)}: {ended}"
        for command, ended in last.items()
        if ended and deciding_program(command)
    ]


def deciding_program(command: str) -> str:
    """Return the program whose failure the exit code would show; empty if there is none.

    For `a; b | c` it is `c`; for `a && b` it is `b`, or `a` if `b` only shows or prints.
    """
    try:
        lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
        words = list(lexer)
    except ValueError:
        return ""
    parts: list[list[str]] = [[]]
    joined: list[str] = []
    for word in words:
        # The lexer joins brackets with an adjacent operator into one word.
        if (operator := word.strip("()")) in _SEPARATORS:
            if parts[-1]:
                parts.append([])
                joined.append(operator)
        else:
            parts[-1].append(word)
    if not parts[-1]:
        parts.pop()
    while parts:
        if (name := _program_of_simple_command(parts.pop())) and name not in DISPLAY_PROGRAMS:
            return name
        if not parts or joined[len(parts) - 1] != "&&":
            break
    return ""


def _program_of_simple_command(words: list[str]) -> str:
    """Return the program that a simple command starts, skipping variables and brackets."""
    for word in words:
        if not re.fullmatch(r"\w+=.*|[({)}]+|!", word, re.DOTALL):
            return word.rpartition("/")[2]
    return ""
