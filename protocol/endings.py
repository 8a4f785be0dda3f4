"""Requests and results of what ends a phase or a job: gates, guards, reviews and reflections."""

from typing import Any, Literal

from pydantic import Field

from protocol.contract import ContractRow, contract_line
from protocol.data_model import Data
from protocol.job_state import JobState
from protocol.phase import Purpose
from protocol.publishing import BranchResult, Publish
from protocol.requests import CheckpointReply, GuardOutcome, JobPosition, Reply
from protocol.scope_ledger import ScopeItem
from protocol.todo_list import TodoEntry
from protocol.usage import Usage

Outcome = Literal["completed", "cancelled", "failed"]
GuardPoint = Literal["todo_complete", "phase_end", "job_complete", "subagent_end"]
"""The endings that a call can cause and guards can check."""

COMPLETION_FILE = "output/completion.json"


class ContractFacts(Data):
    """What a person who approves a plan is shown; bounded."""

    plan: str = ""
    places: list[str] = Field(default_factory=list)
    """Each item with the phases that stand for it, such as `B1 Write a summary: phase 2`."""
    phases: list[str] = Field(default_factory=list)
    boxes: int = 0
    checks: list[str] = Field(default_factory=list)
    """Conditions of the list that is handed over, and the commands that the system runs."""
    held: list[str] = Field(default_factory=list)
    dropped: dict[str, str] = Field(default_factory=dict)
    """Items by id, such as `Cover water: there is no data on it`."""


class GateFacts(Data):
    """What the gates need to know about a workspace; its size is bounded."""

    todos_file: Literal["missing", "invalid", "read"] = "missing"
    todos_error: str = ""
    todos_count: int = 0
    todos: list[TodoEntry] = Field(default_factory=list)
    """The first entries only; `todos_count` says how many there are."""
    plan_phases: int = 0
    plan_unboxed: list[str] = Field(default_factory=list)
    """Phases of the plan without any box, so that nobody can see whether they are done."""
    plan_unread: list[str] = Field(default_factory=list)
    """Headings with open boxes below them that look like phases but do not count as phases."""
    plan_open: int = 0
    plan_ahead: bool = False
    """Whether a phase of the plan other than the running one is open."""
    plan_boxes: list[str] = Field(default_factory=list)
    """Open boxes of the plan; the first few."""
    plan_steps: int = 0
    unknown_items: list[str] = Field(default_factory=list)
    """Todos that name items which do not exist, such as `todo 3: S9`; the first few."""
    vanished: list[str] = Field(default_factory=list)
    unplaced: list[str] = Field(default_factory=list)
    """Open items for which neither a phase of the plan nor a todo stands, with their words."""
    idle: bool = False
    """Whether nothing at all was done in the running phase: no work, and no look."""
    worked: bool = False
    files_changed: int = 0
    """How many files of the work the running phase changed; at most a dozen are counted."""
    contract: ContractFacts | None = None
    """Only for a job whose plan a person approves."""
    amiss: list[str] = Field(default_factory=list)
    """What code finds amiss in items: a file that is not there, work that is gone."""
    updated: list[str] = Field(default_factory=list)
    """Files changed in this phase that an open todo was to update."""
    unmet: str | None = None
    unexplained_phases: list[str] = Field(default_factory=list)
    """Open phases of the plan without a reason in `unresolved`; the first few."""
    gives_up: bool = False
    """Whether the agent has a list of its own, and the call names what it leaves undone."""
    unexplained_items: list[str] = Field(default_factory=list)
    """Ids of open scope items without an entry of their own in `unresolved`; the first few."""
    workspace_tokens: int = 0
    missing_deliverables: list[str] = Field(default_factory=list)
    unnamed_deliverables: list[str] = Field(default_factory=list)
    """Files made or asked for while the call names no deliverable, each with why; the first few."""
    deliverables_fingerprint: str = ""
    """Fingerprint of the work: refusals before a change of it are no repetition."""
    handoff: list[str] = Field(default_factory=list)
    """Why the project cannot take over the job's work yet; empty for a job without a project."""
    result_problem: str = ""
    """Why the job's typed result cannot be accepted; empty when it can, or without one."""
    arguments_error: str | None = None
    unstored: list[str] = Field(default_factory=list)
    """Why shared stores lack what this job wrote or decided; the first few reasons."""
    store_unavailable: bool = False
    refused_writes: list[str] = Field(default_factory=list)
    """Deferred writes that their store now refuses, each with the reason; the first few."""
    unexplained_writes: list[str] = Field(default_factory=list)
    """Subjects of refused writes without a reason in `unresolved`; the first few."""
    uncovered: list[str] = Field(default_factory=list)
    """The number of document sentences that no requirement covers, then the first few of them."""
    badly_read: list[str] = Field(default_factory=list)
    """Badly read documents that `unresolved` does not mention, each with the reason."""


class FactsRequest(JobPosition):
    call: int | None = None
    """The call that would end the phase or the job; None after a phase has handed over."""


class EndingRequest(JobPosition):
    """Runs the guards of a call that the workflow acts on, after its gate, if any, has passed."""

    call: int | None = None
    points: list[GuardPoint]
    approved: bool = False
    push_approved: bool = False
    """Whether a person has seen and approved what would be pushed."""
    publish: Publish | None = None
    bypass: list[str] = Field(default_factory=list)
    stop_hook_active: bool = False


class EndingVerdict(GuardOutcome):
    refusal: str = ""
    stopped: bool = False


class GateFactsReply(Reply):
    facts: GateFacts


class TransitionRequest(JobPosition):
    number: int
    purpose: Purpose
    outcome: Literal["completed", "rewound"] = "completed"
    call: int | None = None
    """The call that ends the phase; its arguments hold notes, an issue or the next list."""
    completes: list[int] = Field(default_factory=list)
    issue: str = ""
    by: str = ""
    acts: list[str] = Field(default_factory=list)
    began: str | None = None
    restore: str | None = None
    restore_files: bool = True
    rewinds: int = 0
    may_ask: bool = True
    summary: bool = False


class TransitionReply(CheckpointReply):
    state: JobState
    issue: str = ""
    """The agent's reason for a rewind that it asked for, bounded."""
    usage: Usage = Field(default_factory=Usage)
    context: int = 0
    mark: str = ""
    """Fingerprint of the list that ended, and of scope and plan then; empty for no list of work."""
    idle: bool = False
    """Whether nothing came of the list but, perhaps, changed files of the work: no item that people
    asked for, and no note of substance."""
    work: str = ""
    """Fingerprint of the work and of the commands of the list; empty if it did neither."""
    moved_aside: list[str] = Field(default_factory=list)
    """Files of a person that were in the projection's way, now in lost+found."""
    remarks: list[str] = Field(default_factory=list)
    """Remarks for people, such as lost writes to a store."""


class CloseRequest(JobPosition):
    status: Outcome
    reason: str = ""
    acts: list[str] = Field(default_factory=list)
    call: int | None = None
    phases: int = 0
    rewinds: int = 0
    usage: Usage = Field(default_factory=Usage)
    starts: list[str] = Field(default_factory=list)
    """Start checkpoints of the phases, in order; only for a job that works on a repository."""
    on_the_spot: bool = False
    """Whether work of the running phase completes what is open."""
    published: str = ""
    proof: str = ""
    """What the message of the pushed commit says of its tests."""
    request_cancel: bool = False
    """Ask the server to cancel the workflow once everything is written."""


class TypedResult(Data):
    """The typed result of a job with a `result_schema`."""

    path: str
    bytes: int
    content: Any = None
    """Content of the file; omitted when it is large."""


class JobResult(Data):
    """The result of a job: `output/completion.json` plus ids and `cached_tokens`."""

    status: Outcome
    summary: str = ""
    deliverables: list[str] = Field(default_factory=list)
    confidence: float | None = None
    notes: str = ""
    unresolved: list[str] = Field(default_factory=list)
    dropped: list[str] = Field(default_factory=list)
    statements: int = 0
    """Statements of what was asked for."""
    met: int = 0
    """Those of them that the acceptance review found met."""
    contract: list[ContractRow] = Field(default_factory=list)
    """How each statement stands; the first of them, those not accepted before the others."""
    phases: int = 0
    rewinds: int = 0
    usage: Usage = Field(default_factory=Usage)
    checkpoint: str = ""
    result: TypedResult | None = None
    tree: str = ""
    """Tree id of the checkpoint without the paths declared in `shell.volatile`."""
    branch: BranchResult | None = None

    @property
    def ending_line(self) -> str:
        """`completed, 11 of 12 statements met`."""
        return ", ".join(filter(None, [self.status, self.contract_line]))

    @property
    def contract_line(self) -> str:
        return contract_line(self.statements, self.met, self.contract)


class CloseReply(CheckpointReply):
    result: JobResult
    scope: list[ScopeItem] = Field(default_factory=list)
    """Items that the end completed or opened again."""
    completed: list[int] = Field(default_factory=list)
    moved_aside: list[str] = Field(default_factory=list)


class JudgeRequest(JobPosition):
    """Asks the judge whether the call may end the phase, after its gate has passed."""

    call: int
    since: str


class JudgeReply(CheckpointReply):
    usage: Usage
    finding: str = ""


class ReviewRequest(JobPosition):
    """One reply of the reviewer to the call of `job_complete` that passed its gate."""

    call: int
    number: int
    """Number of earlier replies of the reviewer; at 0 its conversation begins."""
    last: bool = False
    since: str = ""


MAX_LOOK_UPS = 4
"""Most tool calls that are run from one reply of the reviewer."""


class ReviewReply(CheckpointReply):
    usage: Usage
    context: int = 0
    verdict: Literal["accepted", "sent back"] | None = None
    """Sent back if a statement is unmet, with a quote that is there; None while it reads on."""
    findings: str = ""
    """The unmet statements, with what is missing; what else the reviewer saw in accepted work."""


class ReflectRequest(JobPosition):
    issue: str = ""
    """Why the attempt failed; empty when the call's issue says it."""
    call: int | None = None
    has_findings: bool = False
    """Whether a project sent the work back, whose findings say what failed."""


class ReflectReply(CheckpointReply):
    assumption: str = ""
    prevention: str = ""
    generic: bool = False
    """Whether the model named no file, tool or step, even at the second try."""
    issue: str = ""
    context: int = 0
    usage: Usage = Field(default_factory=Usage)
    failure: str = ""
    """Why there is no reflection, although calls for it may have been paid."""
