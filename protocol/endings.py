"""Requests and results of what stands where a phase or the job would end."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from protocol.repository import BranchResult
from protocol.requests import CheckpointReply, GuardOutcome, JobPosition, Reply, Usage
from protocol.state import Data, DoneWhen, JobState, Purpose

Outcome = Literal["completed", "cancelled", "failed"]
GuardPoint = Literal["todo_complete", "phase_end", "job_complete", "subagent_end"]
"""What a call may end, and guards may stand at."""


class TodoEntry(Data):
    """An entry of `todos.yaml` as it was found; checked by the gate."""

    id: int | None = None
    content: str | None = None
    items: list[str] = Field(default_factory=list)
    done_when: DoneWhen | None = None
    done_when_error: str | None = None
    """What is wrong with its `done_when`."""


class GateFacts(Data):
    """What the gates need to know of a workspace, bounded whatever its files hold."""

    todos_file: Literal["missing", "invalid", "read"] = "missing"
    todos_error: str = ""
    todos_count: int = 0
    todos: list[TodoEntry] = Field(default_factory=list)
    """The first entries only; `todos_count` says how many there are."""
    plan_phases: int = 0
    plan_unboxed: list[str] = Field(default_factory=list)
    """Phases of the plan without a single box: nobody could see whether they are done."""
    plan_unread: list[str] = Field(default_factory=list)
    """Headings that seem to be of phases and are not, with open boxes below them."""
    plan_open: int = 0
    plan_boxes: list[str] = Field(default_factory=list)
    """Open boxes of the plan; the first few."""
    only_unticked: bool = False
    """Whether each open box is that of a completed item: its work is done, and nobody ticked it."""
    plan_steps: int = 0
    updated: list[str] = Field(default_factory=list)
    """Files that an open todo brings up to date and that changed in this phase."""
    unmet: str | None = None
    """Why the current todo is not done by its own `done_when`; None when it is."""
    unexplained_phases: list[str] = Field(default_factory=list)
    """Open phases of the plan for which no entry of `unresolved` gives a reason; the first few."""
    unexplained_items: list[str] = Field(default_factory=list)
    """Ids of the open scope items of which the same is true; the first few."""
    workspace_tokens: int = 0
    missing_deliverables: list[str] = Field(default_factory=list)
    deliverables_fingerprint: str = ""
    """Fingerprint of the content of the deliverables that the call names."""
    handoff: list[str] = Field(default_factory=list)
    """For a job of a project: why its work cannot be taken over yet."""
    result_problem: str = ""
    """Why the job's typed result cannot be accepted; empty when it can, or when there is none."""
    arguments_error: str | None = None
    unstored: list[str] = Field(default_factory=list)
    """Why shared stores lack something that this job wrote or decided; the first few reasons."""
    store_unavailable: bool = False
    """Whether that is because one of them does not answer."""
    refused_writes: list[str] = Field(default_factory=list)
    """Deferred writes that their store refuses now that it answers, with why; the first few."""
    unexplained_writes: list[str] = Field(default_factory=list)
    """What those are about for which no entry of `unresolved` gives a reason; the first few."""
    uncovered: list[str] = Field(default_factory=list)
    """Sentences of the documents that no requirement covers, how many first; the first few."""
    badly_read: list[str] = Field(default_factory=list)
    """Documents read badly for which no entry of `unresolved` says so, each with why."""


class FactsRequest(JobPosition):
    call: int | None = None
    """The call that would end the phase or the job; None where a phase has handed over."""


class EndingRequest(JobPosition):
    """Asks the guards of a call that the workflow acts on, once its gate, if any, has passed."""

    call: int | None = None
    """None where a phase ends that has handed over: asked as of a `todo_complete`."""
    points: list[GuardPoint]
    approved: bool = False
    bypass: list[str] = Field(default_factory=list)
    stop_hook_active: bool = False
    """Whether the job goes on because such a hook blocked its end before."""


class EndingVerdict(GuardOutcome):
    refusal: str = ""
    stopped: bool = False
    """Whether it was a hook of the job's end that refused."""


class GateFactsReply(Reply):
    facts: GateFacts


class TransitionRequest(JobPosition):
    number: int
    """Number of the phase that begins."""
    purpose: Purpose
    outcome: Literal["completed", "rewound"] = "completed"
    call: int | None = None
    """The call that ends the phase: its arguments hold notes, an issue or the next list."""
    completes: list[int] = Field(default_factory=list)
    """Ids of the todos that are completed with it."""
    issue: str = ""
    by: str = ""
    """Who asked for a rewind, where a person did."""
    acts: list[str] = Field(default_factory=list)
    """What people did in the phase that ends, a line each."""
    restore: str | None = None
    """Start of the phase to go back to, for a rewind by phase number."""
    restore_files: bool = True
    rewinds: int = 0
    may_ask: bool = True
    """Whether the job has a question to a person left."""
    summary: bool = False
    """Whether the model is asked for a summary of the phase."""


class TransitionReply(CheckpointReply):
    state: JobState
    issue: str = ""
    """Of a rewind that the agent asked for: why, bounded."""
    usage: Usage = Field(default_factory=Usage)
    context: int = 0
    """Tokens of the next request."""
    moved_aside: list[str] = Field(default_factory=list)
    """Files of a person that were in the projection's way, now in lost+found."""
    remarks: list[str] = Field(default_factory=list)
    """What people should know of it, such as writes to a store that are lost."""


class CloseRequest(JobPosition):
    status: Outcome
    reason: str = ""
    acts: list[str] = Field(default_factory=list)
    """What people did in the last phase, a line each."""
    call: int | None = None
    phases: int = 0
    rewinds: int = 0
    usage: Usage = Field(default_factory=Usage)
    starts: list[str] = Field(default_factory=list)
    """Start checkpoints of the phases, in order, of a job that works on a repository."""
    published: str = ""
    """Where its branch was pushed."""
    request_cancel: bool = False
    """Ask the server to cancel the workflow once everything is written."""


class TypedResult(Data):
    """What a job that has a `result_schema` came to."""

    path: str
    bytes: int
    content: Any = None
    """What the file holds; left out where it is large, and then the file has it."""


class JobResult(Data):
    """The result of a job; but for ids and `cached_tokens` it is `output/completion.json`."""

    status: Outcome
    summary: str = ""
    deliverables: list[str] = Field(default_factory=list)
    confidence: float | None = None
    notes: str = ""
    unresolved: list[str] = Field(default_factory=list)
    dropped: list[str] = Field(default_factory=list)
    """Scope items that were left out, each with the reason."""
    phases: int = 0
    rewinds: int = 0
    usage: Usage = Field(default_factory=Usage)
    checkpoint: str = ""
    result: TypedResult | None = None
    """Only of a job that has a `result_schema`."""
    tree: str = ""
    """Of the checkpoint, without the paths that are declared volatile (`shell.volatile`)."""
    branch: BranchResult | None = None
    """What the work on a repository has become."""


class CloseReply(CheckpointReply):
    result: JobResult
    completed: list[int] = Field(default_factory=list)
    """Ids of the todos that were done when the job ended."""
    moved_aside: list[str] = Field(default_factory=list)
    """Files of a person that were in the projection's way, now in lost+found."""


class JudgeRequest(JobPosition):
    """Asks the judge about the phase that the call would end, once its gate has passed."""

    call: int
    since: str
    """The phase's start checkpoint."""


class JudgeReply(CheckpointReply):
    usage: Usage
    refusal: str = ""
    """Why the phase may not end; empty for a yes."""


class ReviewRequest(JobPosition):
    """One reply of the reviewer to the call of `job_complete` that passed its gate."""

    call: int
    number: int
    """How many replies it has given before; at 0 its conversation begins."""
    last: bool = False
    """No further reply will be asked for."""


MAX_LOOK_UPS = 4
"""Tool calls of one reply of the reviewer that are carried out."""


class ReviewReply(CheckpointReply):
    usage: Usage
    context: int = 0
    """Tokens of its next request."""
    verdict: Literal["accepted", "sent back"] | None = None
    findings: str = ""
    """What is to be done before the job may end."""
