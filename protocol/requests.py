"""Requests and results of the activities.

Every request names the checkpoint it starts from and every result the one it made. Field
names are short because each is written into Temporal's history once a step.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from protocol.course import StuckFigures
from protocol.limits import Budget, Price
from protocol.payloads import Fork
from protocol.state import Data, DoneWhen, JobState, PhaseKind, Purpose, ScopeItem
from protocol.tools import ToolRoute

Outcome = Literal["completed", "cancelled", "failed"]
Verdict = Literal["", "asks", "claims", "reports"]
"""What a reply without a tool call amounts to: it asks a person something, says in words that work
is complete, or only tells. Empty for a reply with calls."""
Point = Literal["todo_complete", "phase_end", "job_complete"]
"""What a call may end, and guards may stand at."""


LOST_WORKERS = 8
"""Attempts of a regular activity on top of those that its own failures get.

An attempt is also spent when the worker is killed or frozen, and a frozen one takes several tasks
along: those that its open polls are given before the server notices.
"""


class Usage(Data):
    """Tokens and money of model calls; cost in the price table's currency."""

    model_calls: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    estimated_tokens: int = 0
    """Prompt tokens by our own count, to be held against what the endpoint said."""
    cost: float = 0.0

    def add(self, other: Usage) -> None:
        for name in Usage.model_fields:
            # Rounded, since sums of money in binary fractions drift.
            setattr(self, name, round(getattr(self, name) + getattr(other, name), 9))


class At(Data):
    """A place in a job: where an activity starts from."""

    root: str
    """Id of the workspaces root the job lives on."""
    commit: str
    at: int
    """Date of the commit to make: epoch seconds of the last regular activity."""
    step: int


class Moved(Data):
    """The checkpoint an activity made."""

    commit: str
    at: int = 0
    """Epoch seconds at which the server scheduled this activity (regular activities only)."""


class ModelRequest(At):
    correction: str | None = None
    """What was wrong with the reply before; shown to the model once, never kept."""
    must_call: bool = False
    """Whether the endpoint is told that the reply has to call a tool."""


class Call(Data):
    """One tool call of a reply. Its arguments are in the checkpoint's conversation."""

    tool: str
    mark: str = ""
    """Fingerprint of the arguments."""
    path: str | None = None
    seconds: int | None = None
    """For `wait`: how long at most."""
    until: int | None = None
    """For `wait`: epoch seconds of its end, if a time was named."""


class ModelReply(Moved):
    finish: str
    calls: list[Call] = Field(default_factory=list)
    usage: Usage
    context: int = 0
    """Tokens of the next request, for a reply without calls; else their results say it."""
    model: str = ""
    """Name of the fallback that answered; empty for the model itself."""
    verdict: Verdict = ""
    guard: str = ""
    """The guard that does not accept it."""
    refusal: str = ""
    """Why not, for the model."""


class CompactRequest(At):
    limit: int
    """Tokens that a request may have."""
    hard: bool = False
    """The endpoint said that the request was too long, whatever our count."""


class Compacted(Moved):
    context: int
    """Tokens of the next request."""
    cleared: int
    """Results that are placeholders now."""
    folded: int
    """Messages that are folded into the summary now."""
    summarised: bool
    """Whether a model wrote the summary, where there is one."""
    usage: Usage = Field(default_factory=Usage)


class ToolRequest(At):
    call: int
    """Place of the call in the reply, from 0."""
    refusal: str | None = None
    """Set when a gate or phase rule refused the call: recorded as its result, not run."""
    answer: str | None = None
    """Set when a person or the system has answered the call: recorded as its result, not run."""
    skip: int = 0
    """How many calls after this one are answered "not run"."""
    waited: int | None = None
    """For `wait`: how many seconds it was."""
    approved: bool = False
    """Whether a person approved the call: what asks lets it pass."""
    bypass: list[str] = Field(default_factory=list)
    """Guards that a person let one refusal of be passed over."""


class Guarded(Data):
    """What guards and hooks made of a call; what the workflow has to know of it."""

    guard: str = ""
    """Who refused it, or asks."""
    asks: str = ""
    """What a person is asked; the call was neither run nor recorded."""
    bypassed: str = ""
    """The guard whose refusal was passed over."""
    remarks: list[str] = Field(default_factory=list)
    """What else was decided, a line each, for people."""


class ToolReply(Moved, Guarded):
    ok: bool
    mark: str = ""
    """Fingerprint of the result."""
    error_mark: str = ""
    """The same of an error without its numbers and names."""
    changed: bool = False
    """Whether a file changed."""
    context: int = 0
    """Tokens of the next request, by our own count."""
    error: str | None = None
    """First line of what went wrong, bounded."""
    scope: list[ScopeItem] = Field(default_factory=list)
    """Scope items that the call added or changed."""


class FoundTodo(Data):
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
    todos: list[FoundTodo] = Field(default_factory=list)
    """The first entries only; `todos_count` says how many there are."""
    plan_phases: int = 0
    plan_unboxed: list[str] = Field(default_factory=list)
    """Phases of the plan without a single box: nobody could tell whether they are done."""
    plan_open: int = 0
    plan_steps: int = 0
    unmet: str | None = None
    """Why the current todo is not done by its own `done_when`; None when it is."""
    unexplained_phases: list[str] = Field(default_factory=list)
    """Open phases of the plan for which no entry of `unresolved` gives a reason; the first few."""
    unexplained_items: list[str] = Field(default_factory=list)
    """Ids of the open scope items of which the same is true; the first few."""
    workspace_tokens: int = 0
    missing_deliverables: list[str] = Field(default_factory=list)
    arguments_error: str | None = None


class FactsRequest(At):
    call: int


class EndingRequest(At):
    """Asks the guards of a call that ends a phase or the job, once its gate has passed."""

    call: int
    points: list[Point]
    approved: bool = False
    bypass: list[str] = Field(default_factory=list)
    stop_hook_active: bool = False
    """Whether the job goes on because such a hook blocked its end before."""


class Ending(Moved, Guarded):
    refusal: str = ""


class Facts(Moved):
    facts: GateFacts


class ShowCallRequest(At):
    call: int


class ShownCall(Moved):
    """What a call of the newest reply asks for, for people."""

    arguments: dict[str, str] = Field(default_factory=dict)
    """Each as text, together bounded."""
    error: str | None = None
    """What is wrong with the arguments, worded for the model."""


class TransitionRequest(At):
    number: int
    """Number of the phase that begins."""
    purpose: Purpose
    outcome: Literal["completed", "rewound"] = "completed"
    call: int | None = None
    completes: int | None = None
    issue: str = ""
    restore: str | None = None
    """Start of the phase to go back to, for a rewind by phase number."""
    restore_files: bool = True
    rewinds: int = 0
    summary: bool = True
    """Whether the limits leave room for the model's summary of the phase."""


class Transitioned(Moved):
    state: JobState
    usage: Usage = Field(default_factory=Usage)
    context: int = 0
    """Tokens of the next request."""
    moved_aside: list[str] = Field(default_factory=list)
    """Files of a person that were in the projection's way, now in lost+found."""


class CloseRequest(At):
    status: Outcome
    reason: str = ""
    call: int | None = None
    phases: int = 0
    rewinds: int = 0
    usage: Usage = Field(default_factory=Usage)
    request_cancel: bool = False
    """Ask the server to cancel the workflow once everything is written."""


class JobResult(Data):
    """The result of a job; the same but for ids is `output/completion.json`."""

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
    tree: str = ""


class Closed(Moved):
    result: JobResult


class RecoverRequest(Data):
    root: str
    candidates: list[str]
    """Commit ids, newest first."""


class Recovered(Moved):
    state: JobState


class ErrorNote(At):
    """What went wrong in the machinery, for `errors/`."""

    text: str


class Imported(Moved):
    """What a person's edits of a paused job became."""

    changed: int = 0
    notes: list[str] = Field(default_factory=list)
    scope: list[ScopeItem] = Field(default_factory=list)
    """Scope items that the edits completed."""


class ReviewRequest(At):
    """One reply of the reviewer to the call of `job_complete` that passed its gate."""

    call: int
    number: int
    """How many replies it has given before; at 0 its conversation begins."""
    last: bool = False
    """No further reply will be asked for."""


class ReviewReply(Moved):
    usage: Usage
    context: int = 0
    """Tokens of its next request."""
    verdict: Literal["accepted", "sent back"] | None = None
    findings: str = ""
    """What is to be done before the job may end."""


class PrepareRequest(Data):
    agent: str = ""
    """Empty only for a fork, which keeps the agent of the first job."""
    instructions: str = ""
    documents: list[str] = Field(default_factory=list)
    items: list[str] = Field(default_factory=list)
    set: dict[str, object] = Field(default_factory=dict)
    fork: Fork | None = None
    chain: str = ""
    """First run id of the workflow: tells a retry or a reset from another job of the same id."""


class ReviewLimits(Data):
    """How a completion is reviewed."""

    attempts: int
    """Times a job may be sent back before it waits for a person."""
    calls: int
    """Replies that one review may take."""


class JobLimits(Data):
    """Figures of the agent's configuration that workflow code enforces."""

    min_todos: int = 5
    max_todos: int = 20
    rewinds: int = 5
    clarifications: int = 1
    clarification_hours: float = 24
    history_events: int = 1000
    tool_attempts: int = 4
    model_seconds: int = 600
    context_tokens: dict[PhaseKind, int] = Field(default_factory=dict)
    """Size of a request at which the conversation is compacted, by kind of phase."""
    workspace_tokens: int = 4000
    job: Budget = Field(default_factory=Budget)
    phase: Budget = Field(default_factory=lambda: Budget(model_calls=500))
    output_tokens: int = 8000
    """The most that one reply may have."""
    review: ReviewLimits | None = None
    price: Price | None = None
    """The model's; None when it is not known, and then there is no limit on cost."""
    stuck: StuckFigures = Field(default_factory=StuckFigures)


class Prepared(Moved):
    root: str
    agent: str
    model: str
    title: str
    tree: str
    state: JobState
    tools: list[ToolRoute]
    limits: JobLimits
    context: int = 0
    """Tokens of the first request."""
    search_attributes: list[str] = Field(default_factory=list)
    """Names of ours that the server has registered; only those may be set."""
