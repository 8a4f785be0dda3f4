"""What workflow code remembers of a job: carried whole when it continues as new."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from protocol.course import Course
from protocol.endings import JobResult, Outcome
from protocol.helpers import Helper
from protocol.notifications import Notifying
from protocol.repository import Publish
from protocol.requests import Call, Pending, Usage
from protocol.start import JobLimits, PrepareReply
from protocol.state import Data, JobState
from protocol.tools import ToolRoute
from protocol.traces import Trace

Status = Literal["running", "waiting"] | Outcome
WaitReason = Literal[
    "clarification",
    "approval",
    "review",
    "stuck",
    "rewinds",
    "budget",
    "credentials",
    "endpoint",
    "tool",
    "storage",
    "dependency",
    "paused",
]
RECENT_CHECKPOINTS = 20
MOST_BYTES = 1_900_000
"""Of a record that is handed over: the server takes 2 MB in one payload."""


class WaitState(Data):
    """Why a job stands still, and what a person does about it, in one sentence."""

    reason: WaitReason
    message: str
    remedy: str
    about: dict[str, str] = Field(default_factory=dict)
    """What the agent wrote that a person has to see as it stands."""
    trying: bool = False
    """Whether the job goes on trying by itself meanwhile."""


class WaitTimer(Data):
    """A `wait` under way, in epoch seconds."""

    started: float
    ends: float

    @property
    def seconds(self) -> int:
        """Its length, as the model sees it."""
        return round(self.ends - self.started)


class ReceivedSignal(Data):
    """A signal as it came in; opened when the job next attends to its inbox."""

    signal: str
    payload: dict[str, Any] = Field(default_factory=dict)
    at: int = 0
    """When it came in, epoch seconds."""

    @property
    def by(self) -> str:
        """Who sent it; empty where the payload does not say."""
        return str(self.payload.get("by") or "")


class PersonAct(Data):
    """What a person did to a job by a signal."""

    at: int
    """When the signal came in, epoch seconds."""
    by: str = ""
    """Who sent it; empty where the payload did not say."""
    phase: int = 0
    signal: str
    did: str
    """What they did, as the rest of a sentence: `paused the job`."""
    id: str = ""
    """Of the request that they answered."""
    detail: str = ""
    """Their own words, or what it concerns."""
    refused: str = ""
    """Why the job did not take it; empty where it did."""

    @property
    def line(self) -> str:
        """`ada@host told the agent at 2026-11-25 11:20:03 UTC: Use metric units.`"""
        when = datetime.fromtimestamp(self.at, UTC)
        id_ = f" ({self.id})" if self.id else ""
        return self._sentence(f"{id_} at {when:%Y-%m-%d %H:%M:%S} UTC")

    @property
    def timeless_line(self) -> str:
        """The same for a file of a checkpoint, in which nothing depends on a clock."""
        return self._sentence("")

    def _sentence(self, when: str) -> str:
        detail = f": {self.detail}" if self.detail else ""
        return f"{self.by or 'A person'} {self.did}{when}{detail}"


class Question(Data):
    """What the agent asks a person."""

    id: str
    question: str
    default: str
    until: int
    """When the job goes on with the default, epoch seconds."""
    answer: str | None = None
    """What the call is answered, once a person has spoken or the time is over."""
    server: str = ""
    """The MCP server that asks in the midst of a call; empty when the agent does."""


class Clarification(Data):
    """The questions of a job."""

    used: int = 0
    pending: Question | None = None
    """Asked, and the model has no answer yet."""
    resolved: int = 0
    """Answered, by a person or with the default."""


class Approval(Data):
    """A call that a person is to approve, and what they said."""

    id: str
    step: int
    call_index: int
    """Place of the call: of which reply, and where in it."""
    tool: str
    arguments: dict[str, str]
    question: str
    guard: str
    until: int | None = None
    """When it counts as denied, epoch seconds; None: never."""
    approved: bool | None = None
    reason: str = ""
    by: str = ""
    """Who approved or denied it; empty when nobody said."""
    decided: int | None = None
    """When, epoch seconds."""
    expired: bool = False
    """Whether it was denied because nobody spoke in time."""


class Review(Data):
    """How far the review of a completion has come."""

    calls: int = 0
    context: int = 0
    """Tokens of the reviewer's next request, where they are known."""
    verdict: Literal["accepted", "sent back"] | None = None
    findings: str = ""
    bypasses: dict[str, str] = Field(default_factory=dict)
    """What let the completion through its guards: given back when the end does not come."""


class Judgement(Data):
    """What the judge says of the phase as it stands at a checkpoint."""

    commit: str
    decided: bool = False
    refusal: str = ""
    """Why the phase may not end; empty for a yes."""


class JobRecord(Data):
    """Everything that survives continue-as-new, beside what checkpoints hold."""

    agent: str
    model: str
    title: str
    root: str
    remote: str = ""
    push_failure: str = ""
    """Why the remote lacks checkpoints; empty when it has all but those of the step in flight."""
    commit: str
    at: int
    state: JobState
    step: int = 0
    """Model calls begun; put back when checkpoints are lost, but not by a rewind."""
    last_phase: int = 1
    """Highest phase number given; no number is used twice."""
    rewinds: int = 0
    last_failure: str = ""
    """What went wrong with the attempt before; empty once a phase of work has come to its end."""
    reflected_step: int = 0
    """The step after the one at which an attempt was last reflected on."""
    inherited_failure: str = ""
    """What made the attempt fail that this job goes on from; empty once it is reflected on."""
    refusals: int = 0
    review: Review | None = None
    """The review under way."""
    review_rejections: int = 0
    """Reviews that did not accept the job, since a person last said to go on."""
    judgement: Judgement | None = None
    """Of the judge, on the call at hand."""
    judge_refusals: int = 0
    """Noes of the judge in this phase, since a person last said to go on."""
    guard_refusals: dict[str, int] = Field(default_factory=dict)
    """How often each guard refused."""
    disproved: list[str] = Field(default_factory=list)
    """What the system's own runs found where the job said that it was done; the newest."""
    undecided: dict[str, int] = Field(default_factory=dict)
    """Refusals in a row of a tool by a guard, hook or verifier that failed itself."""
    bypasses: dict[str, str] = Field(default_factory=dict)
    """Guards whose next refusal is passed over, each with a person's reason."""
    stop_hook_active: bool = False
    """Whether a hook has kept the job from ending, until the job may end."""
    refused_replies: dict[int, str] = Field(default_factory=dict)
    """Why the calls of a reply are not run that was not accepted, by its step: of all replies into
    the middle of which the job may have to go back."""
    tools: list[ToolRoute]
    limits: JobLimits
    search_attributes: list[str] = Field(default_factory=list)
    project: str = ""
    """Id of the project that the job works for; empty for one by itself."""
    notifying: Notifying | None = None
    """Whom it calls, if anybody; a job of a project leaves that to the project."""
    has_repository: bool = False
    """Whether its work becomes a branch. That of a project's job is the project's."""
    publish: Publish | None = None
    """Where its branch is pushed before it ends."""
    usage: Usage = Field(default_factory=Usage)
    phase_usage: Usage = Field(default_factory=Usage)
    """Of the running phase. Like that of the job it is never put back."""
    seconds: float = 0.0
    """How long the job has been at work, without the time it waited for people."""
    phase_seconds: float = 0.0
    clock: float = 0.0
    """Epoch seconds up to which time was counted."""
    phases: dict[int, str] = Field(default_factory=dict)
    """Start checkpoint of each phase."""
    recent_checkpoints: list[str] = Field(default_factory=list)
    """The newest checkpoints, oldest first: where to go back to when one is lost."""
    missing_checkpoint: str = ""
    """The checkpoint at which a step missed something last although it was there itself."""
    calls: list[Call] = Field(default_factory=list)
    """Tool calls of the newest reply."""
    next_call: int = 0
    failed_call: str = ""
    """The first of them that failed, was refused or denied, and why; empty when none has."""
    failed_command: str = ""
    """A command of them that did not succeed: unread, its output would be gone with the phase."""
    handed_over: bool = False
    """Whether the running phase has written the next list."""
    end_tried_step: int = 0
    """The step after which a phase that has handed over was last held against its gate."""
    correction: str | None = None
    """Correction of the last reply, for the next turn."""
    advice: str = ""
    """Advice of stuck detection beside that; empty once a todo is completed."""
    person_edits: str = ""
    """What a person changed in a pause, until the model has read it."""
    course: Course = Field(default_factory=Course)
    """What stuck detection remembers of the running phase."""
    nudges: int = 0
    """How often the model got advice that it goes in circles."""
    timer: WaitTimer | None = None
    """Of the next call, when that is a `wait` that has begun, or works on a server's task."""
    pending: Pending | None = None
    """How far the next call is that its server has not finished."""
    helpers: list[Helper] = Field(default_factory=list)
    """Of the next call, when that is a `delegate`, and of those after it."""
    text_only_replies: int = 0
    """Replies without a tool call in a row."""
    can_require_call: bool = True
    """Whether requests may require a tool call; false once the endpoint has refused that."""
    clarification: Clarification = Field(default_factory=Clarification)
    approval: Approval | None = None
    approvals: list[Approval] = Field(default_factory=list)
    """Those that were decided, the newest, with arguments cut."""
    acts: list[PersonAct] = Field(default_factory=list)
    """What people did, the newest last."""
    context: int = 0
    """Tokens of the next request."""
    compacted_context: int = 0
    """The same right after the last compaction: below that nothing is to be had."""
    hard_compactions: int = 0
    """Compactions in a row because the endpoint said that the request was too long."""
    run_id: str = ""
    """Run id of the workflow."""
    started_at: str = ""
    """When its first run began, as ISO 8601."""
    trace_count: int = 0
    """How many traces there were."""
    traces: list[Trace] = Field(default_factory=list)
    """Not yet in the store, oldest first."""
    deferred_traces: int = 0
    """How many of them the store did not take when they were handed to it."""
    waiting: WaitState | None = None
    pausing: ReceivedSignal | None = None
    """A pause that takes effect when the calls of the reply at hand are carried out."""
    paused_from: WaitReason | None = None
    """What the job waited for when a person paused it."""
    inbox: list[ReceivedSignal] = Field(default_factory=list)
    notices: list[str] = Field(default_factory=list)
    result: JobResult | None = None

    @classmethod
    def begin(cls, prepared: PrepareReply, now: float) -> JobRecord:
        """The record of a job that was just prepared."""
        return cls(
            **{name: getattr(prepared, name) for name in PrepareReply.model_fields},
            step=prepared.state.step,
            last_phase=prepared.state.phase.number,
            phases={prepared.state.phase.number: prepared.commit},
            clock=now,
        )

    @property
    def status(self) -> Status:
        if self.result:
            return self.result.status
        return "waiting" if self.waiting else "running"

    @property
    def context_limit(self) -> int:
        """Size of a request at which the running phase's conversation is compacted."""
        return self.limits.context_tokens[self.state.phase.kind]

    def route(self, tool: str) -> ToolRoute | None:
        """How calls of a tool are run; None when the agent has no such tool."""
        return next((route for route in self.tools if route.name == tool), None)

    @property
    def helper(self) -> Helper | None:
        """The helper of the next call, where one has begun."""
        return next((each for each in self.helpers if each.call == self.next_call), None)

    @property
    def next_correction(self) -> str | None:
        """Everything for the next turn; before a rewind, the advice alone."""
        if self.course.narrowed_issue and self.advice:
            return self.advice
        return " ".join(filter(None, [self.correction, self.advice])) or None

    def add_correction(self, text: str) -> None:
        """Add to the correction for the next turn."""
        self.correction = f"{self.correction} {text}" if self.correction else text

    def add_usage(self, usage: Usage) -> None:
        """Settle what a call used."""
        self.usage.add(usage)
        self.phase_usage.add(usage)

    @property
    def fits(self) -> bool:
        """Whether a new run can be handed it, letters and notes and all."""
        return len(self.model_dump_json(exclude_defaults=True).encode()) <= MOST_BYTES

    def count_time(self, now: float) -> None:
        """Count the time since it was last counted as work."""
        passed = max(0.0, now - self.clock)
        self.seconds = round(self.seconds + passed, 3)
        self.phase_seconds = round(self.phase_seconds + passed, 3)
        self.clock = now

    def begin_phase(self) -> None:
        """A new phase has used nothing yet, and of the one before nothing is under way."""
        self.phase_usage, self.phase_seconds = Usage(), 0.0
        self.calls, self.next_call, self.timer, self.pending = [], 0, None, None
        self.helpers = []
        self.correction, self.advice = None, ""
        self.failed_call, self.failed_command, self.handed_over = "", "", False
        self.course = self.course.in_new_phase
        self.text_only_replies, self.compacted_context, self.hard_compactions = 0, 0, 0
        self.review = None
        self.judgement, self.judge_refusals = None, 0

    def drop_review(self) -> None:
        """End the review of a completion that does not come."""
        if self.review:
            self.bypasses = {**self.review.bypasses, **self.bypasses}
        self.review = None

    def settle_reply(self, refusal: str) -> None:
        """Note of the newest reply whether it was accepted, that is without a refusal."""
        first = self.step - RECENT_CHECKPOINTS
        earlier = {
            step: why for step, why in self.refused_replies.items() if first < step < self.step
        }
        self.refused_replies = {**earlier, self.step: refusal} if refusal else earlier

    def advance_to(self, commit: str, timestamp: int | None = None) -> None:
        """Stand on a new checkpoint, made at that time; None where the one before still counts."""
        self.at = self.at if timestamp is None else timestamp
        if commit != self.commit:
            self.commit = commit
            self.recent_checkpoints = [*self.recent_checkpoints, commit][-RECENT_CHECKPOINTS:]
