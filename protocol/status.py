"""How a job, a project and a trial stand: their query `status`, and what `show --json` prints.

The keys are an interface for programs. Every field has a default: a status on record has few.
"""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from protocol.data_model import Data
from protocol.endings import JobResult
from protocol.job_record import Approval, Clarification
from protocol.job_state import JobState
from protocol.notices import Notice, PersonAct
from protocol.phase import Phase
from protocol.project_start import FormName
from protocol.project_units import Attempt, JobSummary, PersonWait, ProjectResult
from protocol.proof import Proof
from protocol.repository_start import PinnedSource
from protocol.scope_ledger import ScopeItem, scope_counts
from protocol.todo_list import Todo
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun
from protocol.usage import Spend, Usage
from protocol.waiting import WaitState

MOST_ITEMS = 200
ITEM_CHARACTERS = 200
TodoWord = Literal["completed", "current", "open", "passed over"]


class LimitUse(Data):
    """A limit, and how much of it is used."""

    limit: int | float
    spent: int | float


Limits = dict[str, dict[str, LimitUse]]
"""Limits that are set, by what they are for (job, phase, trial, project) and by key."""


class UnderWay(Data):
    """An activity that runs now, such as a model call."""

    activity: str
    since: str
    seconds: int
    job: str = ""
    """For a project, which of its jobs runs it."""


class RemoteStatus(Data):
    """The remote that checkpoints are pushed to."""

    url: str
    behind: str | None = None
    """Why it lacks checkpoints; empty if it lacks none."""


class ScopeCounts(Data):
    """Counts of scope items; `completed` counts original ones only, steps of the plan are apart."""

    original: int = 0
    completed: int = 0
    added: int = 0
    dropped: int = 0
    open: int = 0
    steps: int = 0
    steps_completed: int = 0

    @property
    def line(self) -> str:
        """`3 of 5 items completed; 1 added, 0 dropped, 2 open`; empty without any."""
        if self.original or self.added:
            done = f"{self.completed} of {self.original} items completed"
            return f"{done}; {self.added} added, {self.dropped} dropped, {self.open} open"
        return f"{self.steps_completed} of {self.steps} steps done" if self.steps else ""


class ItemStatus(Data):
    """A scope item, or a step of the plan; its texts are bounded."""

    id: str
    text: str
    status: str
    source: str = ""
    reason: str = ""


class PhaseStatus(Data):
    """The running phase, or the last one."""

    number: int
    kind: str
    name: str = ""
    purpose: str = ""


class PlanPlace(Data):
    """Where the phase is in `plan.md`, from 1; zeros without a plan."""

    position: int = 0
    total: int = 0


class TodoStatus(Data):
    """A todo of the phase."""

    id: int
    content: str
    status: TodoWord


class PhaseCheckpoint(Data):
    """The checkpoint with which a phase began."""

    phase: int
    id: str


class GuardCounts(Data):
    """What guards refused, by guard, and whose next refusal a person has bypassed, with reasons."""

    refused: dict[str, int] = Field(default_factory=dict)
    bypasses: dict[str, str] = Field(default_factory=dict)


class Status(Data):
    job_id: str = ""
    agent: str | None = None
    title: str = ""
    status: str = "running"
    """`running`, `waiting`, `completed`, `failed`, `cancelled` or `terminated`; `not begun` if no
    worker has taken it."""
    waiting_for: str | None = None
    """The reason of `waiting`."""
    waiting: WaitState | None = None
    error: str = ""
    notices: list[Notice] = Field(default_factory=list)
    details: str = ""
    """Its last state in a line, if no worker answers."""
    live: bool = True
    under_way: list[UnderWay] = Field(default_factory=list)
    retrying: list[str] = Field(default_factory=list)
    """Failed activities that are tried again, each with attempt and reason."""
    forgotten: str = ""
    """That `forget` deleted what it left."""

    @model_validator(mode="after")
    def _name_the_reason(self) -> Self:
        if self.waiting:
            self.waiting_for = self.waiting.reason
        return self


class JobStatus(Status):
    """How a job stands."""

    model: str | None = None
    root: str = ""
    remote: RemoteStatus | None = None
    phase: PhaseStatus | None = None
    plan: PlanPlace = Field(default_factory=PlanPlace)
    todos: list[TodoStatus] = Field(default_factory=list)
    step: int = 0
    waits_until: str | None = None
    """When the agent's own `wait` ends, in ISO 8601."""
    usage: Usage = Field(default_factory=Usage)
    unproven: Spend = Field(default_factory=Spend)
    """What was spent since the last proof or completed item."""
    limits: Limits = Field(default_factory=dict)
    scope: ScopeCounts = Field(default_factory=ScopeCounts)
    items: list[ItemStatus] = Field(default_factory=list)
    steps: list[ItemStatus] = Field(default_factory=list)
    refused_completions: int = 0
    reviewing: bool = False
    helpers: int = 0
    clarification: Clarification = Field(default_factory=Clarification)
    approval: Approval | None = None
    approvals: list[Approval] = Field(default_factory=list)
    pausing: bool = False
    """Whether it pauses once the calls of the current reply have run."""
    unread: list[str] = Field(default_factory=list)
    """Signals that are read after the step in flight."""
    people: list[PersonAct] = Field(default_factory=list)
    correction: str | None = None
    remarks: list[str] = Field(default_factory=list)
    refusals: int = 0
    nudges: int = 0
    guards: GuardCounts = Field(default_factory=GuardCounts)
    rewinds: int = 0
    origin: PinnedSource | None = None
    checkpoint: str | None = None
    tree: str | None = None
    """Tree of the checkpoint, by which runs are compared; `show` adds it."""
    checkpoints: list[PhaseCheckpoint] = Field(default_factory=list)
    result: JobResult | None = None


class ProjectUnit(Data):
    """A feature, group or stage of a project."""

    id: str
    title: str
    status: str
    attempts: int = 0
    reasons: list[str] = Field(default_factory=list)
    history: list[Attempt] = Field(default_factory=list)
    commit: str = ""
    unblock: str = ""
    """What a person can do about a blocked unit."""
    checks: list[str] = Field(default_factory=list)
    tested: bool = False
    turn: str = ""
    tests: dict[str, str] = Field(default_factory=dict)
    evidence: list[Proof] = Field(default_factory=list)
    items: list[str] = Field(default_factory=list)
    wave: int = 0


class ProjectJob(Data):
    """A running job of a project."""

    job: str
    agent: str = ""
    unit: str = ""
    role: str = ""
    status: str = "running"
    waiting: str | None = None
    phase: str = ""
    disproved: list[str] = Field(default_factory=list)
    """Claims of completion that proofs contradicted."""
    waits_since: str | None = None
    deadline: str | None = None


class ProjectApproval(Data):
    """The project's own request for approval: to push its branch."""

    id: str
    approved: bool | None = None


class ProjectStatus(Status):
    """How a project stands."""

    project: Literal[True] = True
    form: FormName | None = None
    root: str = ""
    repository: str = ""
    """Path of its git repository on the worker where it began."""
    remote: RemoteStatus | None = None
    origin: PinnedSource | None = None
    approval: ProjectApproval | None = None
    line: str = ""
    """`3 of 12 features; coder on brew`."""
    wave: int = 0
    units: list[ProjectUnit] = Field(default_factory=list)
    running: list[ProjectJob] = Field(default_factory=list)
    jobs: list[JobSummary] = Field(default_factory=list)
    """Those that have ended."""
    usage: Usage = Field(default_factory=Usage)
    unproven: Spend = Field(default_factory=Spend)
    """What was spent since the last proof or completed item."""
    limits: Limits = Field(default_factory=dict)
    scope: ScopeCounts = Field(default_factory=ScopeCounts)
    items: list[ItemStatus] = Field(default_factory=list)
    refusals: int = 0
    waits: list[PersonWait] = Field(default_factory=list)
    head: str = ""
    state: str = ""
    result: ProjectResult | None = None


class TrialStatus(Status):
    """How a trial stands: its query, and its result."""

    trial: Literal[True] = True
    agent: str | None = "trial"
    start: TrialStart | None = None
    """None before it has begun."""
    reached: str = ""
    """The limit that ended the trial, in a sentence."""
    cancellation: str = ""
    """Who cancelled the trial and why, in a sentence; empty if nobody did."""
    runs: list[TrialRun] = Field(default_factory=list)


AnyStatus = JobStatus | ProjectStatus | TrialStatus


def list_item_statuses(items: list[ScopeItem]) -> list[ItemStatus]:
    """Return the first items, those that are not completed before the others."""
    return [
        ItemStatus(
            id=item.id,
            text=item.text[:ITEM_CHARACTERS],
            status=item.status,
            source=item.source,
            reason=item.reason[:ITEM_CHARACTERS],
        )
        for item in sorted(items, key=lambda item: item.status == "completed")[:MOST_ITEMS]
    ]


def _todo_word(phase: Phase, todo: Todo, *, ended: bool) -> TodoWord:
    if todo.done:
        return "completed"
    if not todo.needed:
        return "passed over"
    return "current" if todo is phase.current and not ended else "open"


def state_fields(state: JobState, *, ended: bool) -> dict[str, Any]:
    phase = state.phase
    return {
        "phase": PhaseStatus(
            number=phase.number, kind=phase.kind, name=phase.name, purpose=phase.purpose
        ),
        "plan": PlanPlace(position=phase.plan_position, total=phase.plan_total),
        "todos": [
            TodoStatus(
                id=todo.id, content=todo.content, status=_todo_word(phase, todo, ended=ended)
            )
            for todo in phase.todos
        ],
        "scope": ScopeCounts(**scope_counts(state.scope)),
        "items": list_item_statuses([item for item in state.scope if not item.is_step]),
        "steps": list_item_statuses([item for item in state.scope if item.is_step]),
        "remarks": [remark.line[:300] for remark in state.remarks[-20:]],
    }
