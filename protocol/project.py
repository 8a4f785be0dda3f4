"""A project: what workflow code remembers of it. What people start is in `project_start`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from protocol.handoffs import Handoff
from protocol.limits import Budget
from protocol.notifications import Notifying
from protocol.project_start import ProjectStart
from protocol.proof import AcceptedRun, Check, Proof, Tests
from protocol.record import MOST_BYTES, ReceivedSignal, WaitReason, WaitState
from protocol.repository import BranchResult
from protocol.requests import Usage
from protocol.state import Data, Remark, ScopeItem
from protocol.traces import Trace

UnitStatus = Literal["pending", "in_progress", "completed", "blocked"]
ProjectOutcome = Literal["completed", "failed", "cancelled"]
JobEnding = Literal["completed", "failed", "cancelled", "late"]
"""How a child job ended; `late` is one whose deadline passed."""
PROOF: dict[Check, list[str]] = {"browser": ["browser_*", "*__browser_*"]}
"""Tools that prove what no command can, beside those that a project names."""
SUMMARY_TOKENS = {"coder": 1000, "tester": 1000, "initializer": 1500}
OTHERS_TOKENS = 2000
BRIEF = "project.md"
"""The project's instructions. Like the state file and the result it lies beside the product, on a
branch of its own."""
RESULT = "project-result.json"
PATCH = "changes.patch"
"""What the work on a repository changed, beside the result."""
STATE = "state"
"""That branch."""
MAX_JOB_SUMMARIES = 300
"""Jobs of a project that people can see, the newest."""
MOST_WAITS = 50
"""Times in which a job waited for a person, the newest."""
MOST_UNRESOLVED = 10
"""Of what one of them left open."""
MOST_SCOPE_AND_SETTINGS = 1_200_000
"""Bytes that a project of groups begins with, so that there is room for groups."""


class Attempt(Data):
    """A job that worked on a unit and is over."""

    job: str
    role: str
    outcome: str
    """`accepted`, `sent back`, or how the job ended."""
    why: list[str] = Field(default_factory=list)
    """Why it was not accepted; the first of it."""
    disproved: list[str] = Field(default_factory=list)
    """What proof found where the job said that it was done; it went on then."""
    commit: str = ""
    model_calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class Unit(Data):
    """Something to be worked on until it is completed, or blocked for reasons."""

    id: str
    title: str
    task: str = ""
    items: list[str] = Field(default_factory=list)
    status: UnitStatus = "pending"
    attempts: int = 0
    reasons: list[str] = Field(default_factory=list)
    """What was found wrong last; for a blocked one, why."""
    history: list[Attempt] = Field(default_factory=list)
    """The jobs that worked on it, oldest first."""
    merged: str = ""
    """The commit in the project's main line that it became."""
    commit: str = ""
    """The newest work on it, accepted or not."""
    job: str = ""
    phases: int = 0
    """The last job that worked on it, and its phases: where a fork begins."""

    @property
    def settled(self) -> bool:
        return self.status in ("completed", "blocked")


class Feature(Unit):
    checks: list[Check]
    tests: Tests = Field(default_factory=dict)
    coverage: float | None = None
    tested: bool = False
    evidence: list[Proof] = Field(default_factory=list)
    """What the system ran on the newest work: for one that is tested, what proved it."""
    coder_report: str = ""
    """What its last coder said of it."""
    test_findings: list[str] = Field(default_factory=list)
    """What its last tester found wrong."""
    written_tests: list[str] = Field(default_factory=list)
    """Paths of the tests that it wrote to show that."""
    test_minimums: list[AcceptedRun] = Field(default_factory=list)
    """What its commands ran at most so far: they may not come to run less."""
    turn: Literal["coder", "tester"] = "coder"
    untested_attempts: int = 0
    """Tester jobs that ended without a verdict, for the work at hand."""


class Group(Unit):
    after: list[str] = Field(default_factory=list)
    left_items: dict[str, str] = Field(default_factory=dict)
    """Items that its last job did not do, with the reason."""
    wave: int = 0
    """The wave it was assigned in; 0 before that."""


class Stage(Unit):
    number: int
    """Its place among the stages of the start, from 0."""


class ChildReport(Data):
    """The report of a child job when its status or its phase changes."""

    job: str = Field(max_length=1000)
    status: str = Field("running", max_length=40)
    waiting: WaitReason | None = None
    asks: WaitReason | None = None
    """What it wants of a person, also while it waits for something else, such as in a pause."""
    message: str = Field("", max_length=2000)
    remedy: str = Field("", max_length=2000)
    phase: str = Field("", max_length=200)
    number: int = 0
    checkpoint: str = Field("", max_length=100)
    """The phase after the first that it is in, and where that began: where a fork can go on."""
    disproved: list[str] = Field(default_factory=list, max_length=10)
    """What proof found where the job said that it was done; the newest."""
    usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0


class PersonWait(Data):
    """A time in which a job waited for a person."""

    job: str
    reason: str
    message: str = ""
    since: float
    """Epoch seconds."""
    seconds: float = 0.0
    """How long; 0 while it waits still."""


class RunningJob(Data):
    """A child job at work."""

    unit: str
    role: str
    job: str
    handoff: Handoff
    since: float
    project_seconds_before: float = 0.0
    """Seconds that the project had used when it began, in which the time people take is none."""
    share: dict[str, float] = Field(default_factory=dict)
    """What of the project's limits is set aside for it."""
    last_report: ChildReport
    person_wait: PersonWait | None = None
    """What it waits for a person for, if it does."""


class EndedJob(Data):
    """A child job that is over, not yet looked into."""

    job: str
    status: JobEnding
    reason: str = ""
    checkpoint: str = ""
    phases: int = 0
    usage: Usage = Field(default_factory=Usage)
    unresolved: list[str] = Field(default_factory=list)
    """What it left open, by its own word; the first of it."""


class JobSummary(Data):
    """A job of the project, for people."""

    job: str
    agent: str
    unit: str
    status: str
    summary: str = ""


class ProjectResult(Data):
    """The result of a project."""

    status: ProjectOutcome
    summary: str
    units: list[dict[str, Any]] = Field(default_factory=list)
    unresolved: list[str] = Field(default_factory=list)
    dropped: list[str] = Field(default_factory=list)
    waits: list[PersonWait] = Field(default_factory=list)
    """Which jobs waited for a person, and how long; the newest."""
    usage: Usage = Field(default_factory=Usage)
    jobs: int = 0
    commit: str = ""
    branch: BranchResult | None = None
    """What was pushed, where something was to be."""


class ProjectRecord(Data):
    """Everything a project remembers; carried whole when it continues as new."""

    start: ProjectStart
    id: str
    title: str
    root: str
    repository: str
    """Path of the git repository on the worker, for people."""
    head: str
    """The newest accepted work, a commit."""
    state: str = ""
    """The newest commit of the project's own files."""
    features: list[Feature] = Field(default_factory=list)
    groups: list[Group] = Field(default_factory=list)
    stages: list[Stage] = Field(default_factory=list)
    scope: list[ScopeItem] = Field(default_factory=list)
    wave: int = 0
    planning_attempts: int = 0
    """Attempts of the job that plans: an initializer or a manager, since it last succeeded."""
    planned: bool = False
    """Whether the wave at hand was planned, so that its groups work and no manager is due."""
    finished: bool = False
    """Whether a manager's claim of completion was accepted."""
    findings: list[str] = Field(default_factory=list)
    """What was wrong with the last plan."""
    begun_jobs: dict[str, int] = Field(default_factory=dict)
    """Jobs begun, by unit and role."""
    remarks: list[Remark] = Field(default_factory=list)
    """What people said to the project; every job that begins hears it."""
    results: list[str] = Field(default_factory=list)
    """The newest summaries of accepted work, for those who follow."""
    left_open: dict[str, list[str]] = Field(default_factory=dict)
    """What accepted work leaves unresolved, by unit and role: of the newest job each."""
    running: dict[str, RunningJob] = Field(default_factory=dict)
    """By job id."""
    ended_jobs: list[EndedJob] = Field(default_factory=list)
    job_summaries: list[JobSummary] = Field(default_factory=list)
    waits: list[PersonWait] = Field(default_factory=list)
    trace_count: int = 0
    """How many traces there were."""
    traces: list[Trace] = Field(default_factory=list)
    """Not yet in the store, oldest first."""
    started_at: str = ""
    """When its first run began, as ISO 8601."""
    jobs: int = 0
    limits: Budget = Field(default_factory=Budget)
    usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0
    clock: float = 0.0
    search_attributes: list[str] = Field(default_factory=list)
    notifying: Notifying | None = None
    """Whom it calls, for its jobs as well."""
    waiting: WaitState | None = None
    publish_decision: Literal["", "approved", "denied"] = ""
    """What a person said of pushing its branch, where that is asked for."""
    refusals: int = 0
    notices: list[str] = Field(default_factory=list)
    inbox: list[ReceivedSignal] = Field(default_factory=list)
    result: ProjectResult | None = None

    @property
    def units(self) -> list[Unit]:
        """Features, groups or stages, as the form has them."""
        return [*self.features, *self.groups, *self.stages]

    @property
    def size(self) -> int:
        """Bytes of what a new run is handed, which begins while no job is at work."""
        resting = self.model_copy(update={"running": {}, "ended_jobs": []})
        return len(resting.model_dump_json(exclude_defaults=True).encode())

    @property
    def fits(self) -> bool:
        """Whether a new run can be handed it, letters and notes and all."""
        return self.size <= MOST_BYTES

    def unit(self, unit_id: str) -> Unit | None:
        return next((unit for unit in self.units if unit.id == unit_id), None)

    def count_time(self, now: float, *, still: bool) -> None:
        """Count the time since it was last counted, unless the project stood still."""
        if not still:
            self.seconds = round(self.seconds + max(0.0, now - self.clock), 3)
        self.clock = now
