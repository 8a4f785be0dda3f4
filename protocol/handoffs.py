"""What one agent of a project hands to the next."""

from typing import Literal

from pydantic import Field

from protocol.agent_reports import ReportKind
from protocol.data_model import Data
from protocol.proof import AcceptedRun, Check, Tests
from protocol.routing import RoutingFrame
from protocol.todo_list import DoneWhen

ACCEPTED, YOURS = "accepted", "yours"
"""The sides of a merge conflict, as its marks and file names call them."""
SAME_TASK = "The task is the one above, and the work goes on from where it was left."
"""What a job that continues another one reads in place of the task that it has already."""
OnFailure = Literal["retry", "block"]


class HandoffInputs(Data):
    """What a job starts from."""

    commit: str
    """Commit of the project's repository; its files go into the receiver's workspace."""
    base: str = ""
    """Newest accepted commit at that time; nobody answers for content unchanged since."""
    results: list[str] = Field(default_factory=list)
    findings: list[str] = Field(default_factory=list)
    says_all: bool = False
    """Whether the findings say all there is to learn: a tester's, or a merge conflict."""
    written_tests: list[str] = Field(default_factory=list)
    """Project paths of the tests that a tester wrote to show the findings; they are run."""
    state: str = ""
    """Commit of the project's own files, such as its brief."""


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
    deadline: int | None = Field(None, ge=1)
    on_failure: OnFailure = "retry"
    next_agent: str = ""
    report: ReportKind = ""
    checks: list[Check] = Field(default_factory=list)
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
    def unit(self) -> str:
        return self.id.rsplit("-", 2)[0]

    @property
    def proof_seconds(self) -> int:
        """Most seconds for the system's own runs: each command with its probes, twice with older
        tests as they were, and on two earlier products; each accepted run without the probes.
        """
        check_seconds = [command.seconds for command in self.tests.values()]
        accepted_seconds = [run.seconds for run in self.accepted]
        return sum(9 * (n + 30) for n in check_seconds) + sum(
            5 * (n + 30) for n in accepted_seconds
        )


class ProjectLink(Data):
    """Links a job to the project that it works for."""

    id: str = Field(min_length=1, max_length=1000)
    root: str = ""
    """Id of the workspaces root that the project's repository is on."""
    remote: str = ""
    """Address of the remote that the project's repository is pushed to; empty without one."""
    folder: str
    summary_tokens: int
    handoff: Handoff
    tree: str = ""
    """Tree of that folder at handoff, set by the activity that filled it."""
    divided: bool = False
    """Whether several jobs share the scope in the project's instructions."""

    @property
    def earlier_jobs(self) -> list[str]:
        name, _, number = self.handoff.id.rpartition("-")
        if not number.isdecimal():
            return []
        return [f"{self.id}.{name}-{earlier}" for earlier in range(1, int(number))]
