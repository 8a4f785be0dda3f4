"""The units of a project, the jobs that work on them, and its result."""

from typing import Any, Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.handoffs import Handoff
from protocol.proof import AcceptedRun, Check, Proof, Tests
from protocol.publishing import BranchResult
from protocol.usage import Usage
from protocol.waiting import WaitReason

UnitStatus = Literal["pending", "in_progress", "completed", "blocked"]
ProjectOutcome = Literal["completed", "failed", "cancelled"]
JobEnding = Literal["completed", "failed", "cancelled", "late"]
"""How a child job ended; `late` is one whose deadline passed."""
PROOF: dict[Check, list[str]] = {"browser": ["browser_*", "*__browser_*"]}
"""Tools that prove what no command can, besides those that a project names."""
SUMMARY_TOKENS = {"coder": 1000, "tester": 1000, "initializer": 1500}
OTHERS_TOKENS = 2000
BRIEF = "project.md"
"""The project's instructions. This file, the state file and the result are on a separate branch
from the product."""
RESULT = "project-result.json"
PATCH = "changes.patch"
STATE = "state"
"""The branch with the project's own files."""
MAX_JOB_SUMMARIES = 300
"""How many of a project's newest jobs are listed for people."""
MOST_WAITS = 50
MOST_UNRESOLVED = 10
MOST_SCOPE_AND_SETTINGS = 1_200_000
"""Most bytes of a start with groups; the rest of the record is room for the groups."""


class Attempt(Data):
    """A finished job that worked on a unit."""

    job: str
    role: str
    outcome: str
    """`accepted`, `sent back`, or how the job ended."""
    said: str = ""
    why: list[str] = Field(default_factory=list)
    """Why it was not accepted, and what a tester found."""
    disproved: list[str] = Field(default_factory=list)
    """Findings of proofs that contradicted the job's claim of completion; the job then went on."""
    commit: str = ""
    branch: str = ""
    """The branch of the project's repository with its work."""
    model_calls: int = 0
    tokens: int = 0
    cost: float = 0.0


class Unit(Data):
    """A part of the project that jobs work on until it is completed, or blocked with reasons."""

    id: str
    title: str
    task: str = ""
    items: list[str] = Field(default_factory=list)
    status: UnitStatus = "pending"
    attempts: int = 0
    reasons: list[str] = Field(default_factory=list)
    """The last findings; for a blocked unit, why it is blocked."""
    history: list[Attempt] = Field(default_factory=list)
    merged: str = ""
    """Its commit in the project's main line; empty before the merge."""
    commit: str = ""
    job: str = ""
    phases: int = 0
    """The last job of the unit, and its phase at whose start a fork begins; 0 for its end."""

    @property
    def settled(self) -> bool:
        return self.status in ("completed", "blocked")


class Feature(Unit):
    checks: list[Check]
    tests: Tests = Field(default_factory=dict)
    coverage: float | None = None
    tested: bool = False
    evidence: list[Proof] = Field(default_factory=list)
    """Proofs that the system ran on the newest work."""
    coder_report: str = ""
    changed: list[str] = Field(default_factory=list)
    """Paths that the system saw its coders change; the newest few."""
    test_changes: str = ""
    """How its coder changed tests that were there before, as a diff; its beginning."""
    test_findings: list[str] = Field(default_factory=list)
    written_tests: list[str] = Field(default_factory=list)
    """Paths of the tests that its last tester wrote to show the findings."""
    passed_findings: list[str] = Field(default_factory=list)
    """Findings of the verdict that passed it."""
    test_minimums: list[AcceptedRun] = Field(default_factory=list)
    """The most that each of its commands has run so far; later runs may not run less."""
    turn: Literal["coder", "tester"] = "coder"
    untested_attempts: int = 0
    """Tester jobs on the current work that ended without a verdict."""


class Group(Unit):
    after: list[str] = Field(default_factory=list)
    left_items: dict[str, str] = Field(default_factory=dict)
    """Items that its last job did not do, each with the reason."""
    wave: int = 0
    """The wave in which it was assigned; 0 before that."""


class Stage(Unit):
    number: int
    """Index among the stages of the start, from 0."""


class ChildReport(Data):
    job: str = Field(max_length=1000)
    status: str = Field("running", max_length=40)
    waiting: WaitReason | None = None
    asks: WaitReason | None = None
    """What it needs from a person, even while it waits for something else, such as in a pause."""
    message: str = Field("", max_length=2000)
    remedy: str = Field("", max_length=2000)
    command: str = Field("", max_length=1000)
    limit: str = ""
    """The key of the job's own limit that is used up."""
    phase: str = Field("", max_length=200)
    number: int = 0
    checkpoint: str = Field("", max_length=100)
    """Start of its current phase, if that is not the first: a fork can begin there."""
    disproved: list[str] = Field(default_factory=list, max_length=10)
    """Newest findings of proofs that contradicted the job's claim of completion."""
    usage: Usage = Field(default_factory=Usage)
    seconds: float = 0.0

    @property
    def news(self) -> tuple[object, ...]:
        """Return what is worth a report once it has changed."""
        return self.status, self.waiting, self.asks, self.message, self.phase, self.disproved


class PersonWait(Data):
    """A period in which a job waited for a person."""

    job: str
    reason: str
    message: str = ""
    since: float
    """Epoch seconds."""
    seconds: float = 0.0
    """Length of the wait; 0 while it lasts."""


class RunningJob(Data):
    unit: str
    role: str
    job: str
    handoff: Handoff
    since: float
    project_seconds_before: float = 0.0
    """Seconds that the project had used when the job began, without waits for people."""
    share: dict[str, float] = Field(default_factory=dict)
    """Amounts of the project's limits that are reserved for it."""
    last_report: ChildReport
    person_wait: PersonWait | None = None
    """Its current wait for a person; None when it does not wait."""


class EndedJob(Data):
    job: str
    status: JobEnding
    reason: str = ""
    checkpoint: str = ""
    phases: int = 0
    usage: Usage = Field(default_factory=Usage)
    unresolved: list[str] = Field(default_factory=list)
    """The first entries that it reported as unresolved."""


class JobSummary(Data):
    """A job of the project, as listed for people."""

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
    """The newest waits of jobs for a person."""
    usage: Usage = Field(default_factory=Usage)
    jobs: int = 0
    commit: str = ""
    branch: BranchResult | None = None
