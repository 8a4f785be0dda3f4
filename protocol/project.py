"""A project: what people start, what workflow code remembers, and what its activities are asked."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from protocol.handoffs import Check, Handoff, Line, OnFailure, UnitId
from protocol.limits import Budget
from protocol.record import Letter, Waiting, WaitReason
from protocol.requests import Usage
from protocol.state import Data, DoneWhen, ScopeItem
from protocol.traces import Trace

FormName = Literal["features", "groups", "pipeline"]
UnitStatus = Literal["pending", "in_progress", "completed", "blocked"]
ProjectOutcome = Literal["completed", "failed", "cancelled"]
Ending = Literal["completed", "failed", "cancelled", "late"]
"""How a child job ended; `late` is one whose deadline passed."""
PROOF: dict[Check, list[str]] = {
    "unit": ["run_command"],
    "api": ["run_command", "http_*"],
    "db": ["run_command", "query_*"],
    "browser": ["browser_*", "*__browser_*"],
}
SUMMARY_TOKENS = {"coder": 1000, "tester": 1000, "initializer": 1500}
OTHERS_TOKENS = 2000
STATE_FILES: dict[FormName, str] = {
    "features": "feature-list.json",
    "groups": "groups.json",
    "pipeline": "pipeline.json",
}
ROLES: dict[FormName, tuple[str, ...]] = {
    "features": ("initializer", "coder", "tester"),
    "groups": ("manager", "worker"),
    "pipeline": (),
}
"""The roles that jobs have in each form; stages of a pipeline name their agents."""
BRIEF = "project.md"
"""The project's instructions, in its repository."""
MOST_SECONDS = 10**12
"""No timer takes 10 ** 20."""
MOST_TOLD = 300
"""Jobs of a project that people are told of, the newest."""
MOST_UNRESOLVED = 10
"""Of what one of them left open."""


class StageStart(Data):
    """One station of a pipeline."""

    agent: str = Field(min_length=1)
    id: UnitId | None = None
    task: str = Field("", max_length=10_000)
    documents: list[str] = Field(default_factory=list, max_length=1000)
    items: list[str] = Field(default_factory=list, max_length=2000)
    needs: list[DoneWhen] = Field(default_factory=list, max_length=20)
    delivers: list[DoneWhen] = Field(default_factory=list, max_length=20)
    success: list[Line] = Field(default_factory=list, max_length=20)
    deadline: int | None = Field(None, ge=1, le=MOST_SECONDS)
    on_failure: OnFailure = "retry"
    set: dict[str, Any] = Field(default_factory=dict)


class ProjectStart(Data):
    """Input of the workflow `Project`; the same as a project's YAML file."""

    form: FormName
    title: str = Field("", max_length=200)
    instructions: str = Field("", max_length=200_000)
    documents: list[str] = Field(default_factory=list, max_length=1000)
    items: list[Line] = Field(default_factory=list, max_length=2000)
    """The scope of `groups`."""
    stages: list[StageStart] = Field(default_factory=list, max_length=50)
    """The stations of `pipeline`."""
    agents: dict[str, str] = Field(default_factory=dict)
    """Other agents for the roles initializer, coder, tester, manager, worker."""
    product: str = Field("repo", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")
    """The folder of each workspace that holds the project's files."""
    parallel: int = Field(4, ge=1, le=50)
    attempts: int = Field(2, ge=1, le=20)
    proof: dict[Check, Annotated[list[str], Field(min_length=1)]] = Field(default_factory=dict)
    success: list[DoneWhen] = Field(default_factory=list, max_length=20)
    """What must hold of the project's files before `groups` may end."""
    deadline: int | None = Field(None, ge=1, le=MOST_SECONDS)
    """Seconds that each job may take."""
    limits: Budget = Field(default_factory=Budget)
    set: dict[str, Any] = Field(default_factory=dict)
    history_events: int = Field(1000, ge=10, le=10_000)
    """Events after which the project goes on as new, once no job is at work."""

    @model_validator(mode="after")
    def _fits_its_form(self) -> Self:
        if (self.form == "pipeline") is not bool(self.stages):
            raise ValueError("stages: the form pipeline has stages, and no other form has")
        tasks = [stage.task.strip() for stage in self.stages]
        if not self.instructions.strip() and not (tasks and all(tasks)):
            raise ValueError("instructions: field required")
        ids = self.stage_ids
        if len(set(ids)) < len(ids):
            raise ValueError(
                "stages: two have the same id; one without an id is called by its place, as stage-2"
            )
        known = {role for roles in ROLES.values() for role in roles}
        if strange := sorted(self.agents.keys() - known):
            raise ValueError(
                f"agents: {', '.join(strange)} is no role; the roles are {', '.join(sorted(known))}"
            )
        return self

    @property
    def stage_ids(self) -> list[str]:
        """What the stations are called, in order."""
        return [stage.id or f"stage-{number}" for number, stage in enumerate(self.stages, 1)]

    def agent(self, role: str) -> str:
        """Who plays a role."""
        return self.agents.get(role, DEFAULT_AGENTS.get(role, role))


DEFAULT_AGENTS = {"worker": "generalist"}


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
    coverage: float | None = None
    tested: bool = False
    evidence: list[str] = Field(default_factory=list)
    turn: Literal["coder", "tester"] = "coder"
    doubts: int = 0
    """Tester jobs that ended without a verdict, for the work at hand."""


class Group(Unit):
    after: list[str] = Field(default_factory=list)
    left: dict[str, str] = Field(default_factory=dict)
    """Items that its last job did not do, with the reason."""
    wave: int = 0
    """The wave it was assigned in; 0 before that."""


class Stage(Unit):
    number: int
    """Its place among the stages of the start, from 0."""


class ChildReport(Data):
    """What a child job tells of itself when its status or its phase changes."""

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
    usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0


class Running(Data):
    """A child job at work."""

    unit: str
    role: str
    job: str
    handoff: Handoff
    since: float
    after: float = 0.0
    """Seconds that the project had used when it began, in which the time people take is none."""
    share: dict[str, float] = Field(default_factory=dict)
    """What of the project's limits is set aside for it."""
    seen: ChildReport


class Ended(Data):
    """A child job that is over, not yet looked into."""

    job: str
    status: Ending
    reason: str = ""
    checkpoint: str = ""
    phases: int = 0
    usage: Usage = Field(default_factory=Usage)
    unresolved: list[str] = Field(default_factory=list)
    """What it left open, by its own word; the first of it."""


class Told(Data):
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
    usage: Usage = Field(default_factory=Usage)
    jobs: int = 0
    commit: str = ""


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
    features: list[Feature] = Field(default_factory=list)
    groups: list[Group] = Field(default_factory=list)
    stages: list[Stage] = Field(default_factory=list)
    scope: list[ScopeItem] = Field(default_factory=list)
    wave: int = 0
    planning: int = 0
    """Attempts of the job that plans: an initializer or a manager, since it last succeeded."""
    planned: bool = False
    """Whether the wave at hand was planned, so that its groups work and no manager is due."""
    finished: bool = False
    """Whether a manager's claim of completion was accepted."""
    findings: list[str] = Field(default_factory=list)
    """What was wrong with the last plan."""
    count: dict[str, int] = Field(default_factory=dict)
    """Jobs begun, by unit and role."""
    results: list[str] = Field(default_factory=list)
    """The newest summaries of accepted work, for those who follow."""
    left_open: dict[str, list[str]] = Field(default_factory=dict)
    """What accepted work leaves unresolved, by unit and role: of the newest job each."""
    running: dict[str, Running] = Field(default_factory=dict)
    """By job id."""
    ended: list[Ended] = Field(default_factory=list)
    told: list[Told] = Field(default_factory=list)
    noted: int = 0
    """How many traces there were."""
    traces: list[Trace] = Field(default_factory=list)
    """Not yet in the store, oldest first."""
    began: str = ""
    """When its first run began, as ISO 8601."""
    jobs: int = 0
    limits: Budget = Field(default_factory=Budget)
    usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0
    clock: float = 0.0
    search_attributes: list[str] = Field(default_factory=list)
    waiting: Waiting | None = None
    refusals: int = 0
    notices: list[str] = Field(default_factory=list)
    inbox: list[Letter] = Field(default_factory=list)
    result: ProjectResult | None = None

    @property
    def units(self) -> list[Unit]:
        """Features, groups or stages, as the form has them."""
        return [*self.features, *self.groups, *self.stages]

    def unit(self, unit_id: str) -> Unit | None:
        return next((unit for unit in self.units if unit.id == unit_id), None)

    def count_time(self, now: float, *, still: bool) -> None:
        """Count the time since it was last counted, unless the project stood still."""
        if not still:
            self.seconds = round(self.seconds + max(0.0, now - self.clock), 3)
        self.clock = now
