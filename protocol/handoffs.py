"""What one agent of a project hands to the next, and the typed files that agents answer with."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from protocol.job_state import Data, DoneWhen
from protocol.proof import AcceptedRun, Check, Tests

OnFailure = Literal["retry", "block"]
ReportKind = Literal["", "features", "groups", "verdict"]
"""The typed file that a job writes besides its work."""
REPORT_FILES: dict[ReportKind, str] = {
    "features": "output/features.json",
    "groups": "output/groups.json",
    "verdict": "output/verdict.json",
}
MOST_FEATURES = 100
MOST_GROUPS = 100
SETUP, SCOPE = "setup", "scope"
"""Pseudo-units of the planning jobs (initializer, manager); no real unit has these names."""


def _check_handoff_id_is_free(name: str) -> str:
    if name in (SETUP, SCOPE):
        raise ValueError(f"{name} is kept for the system; choose another id")
    return name


UnitId = Annotated[
    str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$"), AfterValidator(_check_handoff_id_is_free)
]
Line = Annotated[str, Field(min_length=1, max_length=300)]
Paragraph = Annotated[str, Field(min_length=1, max_length=800)]
Finding = Annotated[str, Field(min_length=1, max_length=4000)]
"""A finding, passed on verbatim."""


class HandoffInputs(Data):
    """What a job starts from."""

    commit: str
    """Commit of the project's repository; its files go into the receiver's workspace."""
    base: str = ""
    """Newest accepted commit at that time; nobody answers for content unchanged since."""
    results: list[str] = Field(default_factory=list)
    """Summaries of the previous jobs, one text each."""
    findings: list[str] = Field(default_factory=list)
    """Findings about this work, verbatim."""
    written_tests: list[str] = Field(default_factory=list)
    """Project paths of the tests that a tester wrote to show the findings; they are run."""
    state: str = ""
    """Commit of the project's own files, such as its brief."""


class RoutingFrame(Data):
    """What a manager's division is checked against."""

    required: list[str] = Field(default_factory=list)
    """Ids of the items that must now be in a group or dropped with a reason."""
    optional: list[str] = Field(default_factory=list)
    """Ids of items of blocked groups; another group may take them."""
    accepted: list[str] = Field(default_factory=list)
    """Ids of items of accepted groups; they may be worked on again."""
    groups: list[str] = Field(default_factory=list)
    """Ids of all groups."""
    live: list[str] = Field(default_factory=list)
    """Ids of the groups that are neither completed nor blocked."""
    room: int = 1_000_000
    """Bytes that the project has left for further groups."""


class Handoff(Data):
    """Work passed from one agent to another. The receiver checks it before its first model call."""

    id: str = Field(min_length=1, max_length=200)
    """Derived from unit, role and attempt, so that a repeated handoff has the same id."""
    from_agent: str
    """The previous agent, or `project`."""
    to_agent: str = Field(min_length=1)
    task: str = Field(min_length=1, max_length=20_000)
    inputs: HandoffInputs
    precondition: list[DoneWhen] = Field(default_factory=list, max_length=20)
    """Conditions on the receiver's workspace before it begins."""
    postcondition: list[DoneWhen] = Field(default_factory=list, max_length=20)
    """Conditions on the workspace when the receiver claims completion."""
    success: list[str] = Field(default_factory=list)
    """Success criteria in words."""
    deadline: int | None = Field(None, ge=1)
    """Seconds after which the project withdraws the work."""
    on_failure: OnFailure = "retry"
    next_agent: str = ""
    """The agent that works next if this is accepted; empty when undecided."""
    report: ReportKind = ""
    checks: list[Check] = Field(default_factory=list)
    """Checks that a verdict must cover."""
    coverage: float | None = None
    """Least coverage that the verdict must report, in percent."""
    proof: dict[Check, list[str]] = Field(default_factory=dict)
    """For checks that no command can perform: shell patterns of tools whose result proves that the
    check was run."""
    tests: Tests = Field(default_factory=dict)
    """Commands with which the system proves the other checks; for an initializer, the commands that
    the project's file fixes."""
    accepted: list[AcceptedRun] = Field(default_factory=list)
    """Earlier proofs that must still hold."""
    routing: RoutingFrame | None = None

    @property
    def proof_seconds(self) -> int:
        """Most seconds for the system's own runs: each command twice, each accepted run once."""
        check_seconds = [command.seconds for command in self.tests.values()]
        return sum(2 * (n + 30) for n in check_seconds) + sum(
            run.seconds + 30 for run in self.accepted
        )


class ProjectLink(Data):
    """Links a job to the project that it works for."""

    id: str = Field(min_length=1, max_length=1000)
    root: str = ""
    """Id of the workspaces root that the project's repository is on."""
    remote: str = ""
    """Address of the remote that the project's repository is pushed to; empty without one."""
    folder: str
    """Workspace folder with the project's files."""
    summary_tokens: int
    handoff: Handoff
    tree: str = ""
    """Tree of that folder at handoff, set by the activity that filled it."""
    divided: bool = False
    """Whether several jobs share the scope in the project's instructions."""

    @property
    def earlier_jobs(self) -> list[str]:
        """Finished jobs of the project that had the same task before this one."""
        name, _, number = self.handoff.id.rpartition("-")
        if not number.isdecimal():
            return []
        return [f"{self.id}.{name}-{earlier}" for earlier in range(1, int(number))]


class FeatureEntry(Data):
    """A feature as the initializer described it."""

    id: UnitId
    description: Paragraph
    checks: list[Check] = Field(min_length=1, max_length=4)
    tests: Tests = Field(default_factory=dict)
    """The command of each check, where the project's file does not fix it."""
    coverage: float | None = Field(None, gt=0, le=100)
    """Least percentage of the code that tests must cover."""
    items: list[Line] = Field(default_factory=list, max_length=20)


class FeatureReport(Data):
    """`output/features.json`."""

    features: list[FeatureEntry] = Field(min_length=1, max_length=MOST_FEATURES)

    @model_validator(mode="after")
    def _check_feature_ids_differ(self) -> Self:
        ids = [feature.id for feature in self.features]
        if twice := sorted({id_ for id_ in ids if ids.count(id_) > 1}):
            raise ValueError(f"two features have the id {', '.join(twice)}")
        return self


class GroupEntry(Data):
    """A group as the manager described it."""

    id: UnitId
    title: Line
    task: Annotated[str, Field(max_length=800)] = ""
    items: list[str] = Field(min_length=1, max_length=200)
    after: list[str] = Field(default_factory=list, max_length=20)
    """Groups that must be finished before this one begins."""


class DroppedItem(Data):
    id: str
    reason: Line


class Routing(Data):
    """`output/groups.json`."""

    groups: list[GroupEntry] = Field(default_factory=list, max_length=MOST_GROUPS)
    drop: list[DroppedItem] = Field(default_factory=list, max_length=MOST_GROUPS)
    complete: bool = False
    """Whether every item is done, or blocked with a reason."""


class CheckResult(Data):
    check: Check
    passed: bool
    detail: Annotated[str, Field(max_length=4000)] = ""


class TesterVerdict(Data):
    """`output/verdict.json`."""

    health: Paragraph
    """Findings of the health check at the start of the test."""
    checks: list[CheckResult] = Field(min_length=1, max_length=20)
    coverage: float | None = Field(None, ge=0, le=100)
    passed: bool
    findings: list[Finding] = Field(default_factory=list, max_length=20)
