"""What one agent of a project hands to the next, and the typed files that agents answer with."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from protocol.proof import AcceptedRun, Check, Tests
from protocol.state import Data, DoneWhen

OnFailure = Literal["retry", "block"]
ReportKind = Literal["", "features", "groups", "verdict"]
"""The typed file that a job answers with, beside what it makes."""
REPORT_FILES: dict[ReportKind, str] = {
    "features": "output/features.json",
    "groups": "output/groups.json",
    "verdict": "output/verdict.json",
}
MOST_FEATURES = 100
MOST_GROUPS = 100
SETUP, SCOPE = "setup", "scope"
"""What an initializer and a manager work on, who plan a project; no unit has such a name."""


def _not_reserved(name: str) -> str:
    if name in (SETUP, SCOPE):
        raise ValueError(f"{name} is kept for the system; choose another id")
    return name


UnitId = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$"), AfterValidator(_not_reserved)]
Line = Annotated[str, Field(min_length=1, max_length=300)]
Paragraph = Annotated[str, Field(min_length=1, max_length=800)]
Finding = Annotated[str, Field(min_length=1, max_length=4000)]
"""Handed on word for word."""


class HandoffInputs(Data):
    """What a job starts from."""

    commit: str
    """Of the project's repository; its files are put into the receiver's workspace."""
    base: str = ""
    """The newest accepted work at that time: what is as it was there nobody has to answer for."""
    results: list[str] = Field(default_factory=list)
    """What the jobs before it said of their work, a text each."""
    findings: list[str] = Field(default_factory=list)
    """What was found wrong with this very work, word for word."""
    written_tests: list[str] = Field(default_factory=list)
    """Paths in the project of tests that a tester wrote to show it; they are run."""
    state: str = ""
    """The commit of the project's own files (its brief), beside the product."""


class RoutingFrame(Data):
    """What a manager's division is held against."""

    required: list[str] = Field(default_factory=list)
    """Ids of the items that have to be in a group now, or dropped with a reason."""
    optional: list[str] = Field(default_factory=list)
    """Ids of the items of blocked groups: they may be tried in another group."""
    accepted: list[str] = Field(default_factory=list)
    """Ids of the items of accepted groups: what is not done after all may be worked on again."""
    groups: list[str] = Field(default_factory=list)
    """Ids of the groups there are."""
    live: list[str] = Field(default_factory=list)
    """Ids of those that are neither completed nor blocked."""
    room: int = 1_000_000
    """Bytes that the project can keep of further groups."""


class Handoff(Data):
    """Work, from one to another. The receiver checks it before its first model call."""

    id: str = Field(min_length=1, max_length=200)
    """Made from the unit, the role and the attempt: the same when it is handed over again."""
    from_agent: str
    """Who hands over: the agent that worked before, or `project`."""
    to_agent: str = Field(min_length=1)
    task: str = Field(min_length=1, max_length=20_000)
    inputs: HandoffInputs
    precondition: list[DoneWhen] = Field(default_factory=list, max_length=20)
    """What must hold of the receiver's workspace before it begins."""
    postcondition: list[DoneWhen] = Field(default_factory=list, max_length=20)
    """What must hold of it when it says that it is done."""
    success: list[str] = Field(default_factory=list)
    """Success criteria in words."""
    deadline: int | None = Field(None, ge=1)
    """Seconds after which the work is taken back."""
    on_failure: OnFailure = "retry"
    next_agent: str = ""
    """Who works next if this is accepted; empty when nobody is settled on yet."""
    report: ReportKind = ""
    checks: list[Check] = Field(default_factory=list)
    """What a verdict has to cover."""
    coverage: float | None = None
    """Least coverage that it has to report."""
    proof: dict[Check, list[str]] = Field(default_factory=dict)
    """For checks that no command can make: tools, as shell patterns, a result of which proves that
    it was run."""
    tests: Tests = Field(default_factory=dict)
    """The commands by which the system proves the other checks; for an initializer, those that the
    project's file fixes."""
    accepted: list[AcceptedRun] = Field(default_factory=list)
    """What was proved before: it has to hold still."""
    routing: RoutingFrame | None = None

    @property
    def proof_seconds(self) -> int:
        """How long the system's own runs of its commands may take: each twice, and what was
        accepted before once."""
        check_seconds = [command.seconds for command in self.tests.values()]
        return sum(2 * (n + 30) for n in check_seconds) + sum(
            run.seconds + 30 for run in self.accepted
        )


class ProjectLink(Data):
    """For a job that works for a project."""

    id: str = Field(min_length=1, max_length=1000)
    root: str = ""
    """Id of the workspaces root that the project's repository is on."""
    folder: str
    """Where in the workspace the project's files are."""
    summary_tokens: int
    handoff: Handoff
    tree: str = ""
    """What was in that folder when it was handed over, set by whoever put it there."""
    divided: bool = False
    """Whether the scope in the project's instructions is that of many jobs, and of none alone."""

    @property
    def earlier_jobs(self) -> list[str]:
        """The project's jobs that had the task of this one before it, and are over."""
        name, _, number = self.handoff.id.rpartition("-")
        if not number.isdecimal():
            return []
        return [f"{self.id}.{name}-{earlier}" for earlier in range(1, int(number))]


class FeatureEntry(Data):
    """A feature as the initializer describes it."""

    id: UnitId
    description: Paragraph
    checks: list[Check] = Field(min_length=1, max_length=4)
    tests: Tests = Field(default_factory=dict)
    """The command of each check, where the project's file does not fix it."""
    coverage: float | None = Field(None, gt=0, le=100)
    """Least percentage of the code that tests must run through."""
    items: list[Line] = Field(default_factory=list, max_length=20)


class FeatureReport(Data):
    """`output/features.json`."""

    features: list[FeatureEntry] = Field(min_length=1, max_length=MOST_FEATURES)

    @model_validator(mode="after")
    def _ids_differ(self) -> Self:
        ids = [feature.id for feature in self.features]
        if twice := sorted({id_ for id_ in ids if ids.count(id_) > 1}):
            raise ValueError(f"two features have the id {', '.join(twice)}")
        return self


class GroupEntry(Data):
    """A group as the manager describes it."""

    id: UnitId
    title: Line
    task: Annotated[str, Field(max_length=800)] = ""
    items: list[str] = Field(min_length=1, max_length=200)
    after: list[str] = Field(default_factory=list, max_length=20)
    """Groups that must be through before it begins."""


class DroppedItem(Data):
    id: str
    reason: Line


class Routing(Data):
    """`output/groups.json`."""

    groups: list[GroupEntry] = Field(default_factory=list, max_length=MOST_GROUPS)
    drop: list[DroppedItem] = Field(default_factory=list, max_length=MOST_GROUPS)
    complete: bool = False
    """Whether everything is done, or blocked for reasons."""


class CheckResult(Data):
    check: Check
    passed: bool
    detail: Annotated[str, Field(max_length=4000)] = ""


class TesterVerdict(Data):
    """`output/verdict.json`."""

    health: Paragraph
    """What the health check found, with which the test begins."""
    checks: list[CheckResult] = Field(min_length=1, max_length=20)
    coverage: float | None = Field(None, ge=0, le=100)
    passed: bool
    findings: list[Finding] = Field(default_factory=list, max_length=20)
