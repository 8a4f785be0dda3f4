"""What workflow code remembers of a job; carried over when the job continues as new."""

from typing import Literal

from pydantic import Field

from protocol.course_window import Course
from protocol.data_model import Data
from protocol.endings import JobResult, Outcome
from protocol.helpers import Helper
from protocol.job_state import JobState
from protocol.limits import JobLimits
from protocol.notices import Notice, PersonAct
from protocol.notification_requests import Notifying
from protocol.payloads import ReceivedSignal
from protocol.prepare_requests import PrepareReply
from protocol.publishing import PUBLISH, Publish
from protocol.repository_start import PinnedSource
from protocol.requests import Call, Pending, tool_effect_key
from protocol.tools import ToolRoute
from protocol.trace_requests import Trace
from protocol.usage import Progress, Spend, Usage
from protocol.waiting import WaitReason, WaitState, WaitTimer

Status = Literal["running", "waiting"] | Outcome
RECENT_CHECKPOINTS = 20
MOST_BYTES = 1_900_000
"""Most bytes of a record that is carried over: the server takes 2 MB in one payload."""


class Question(Data):
    """A question of the agent to a person."""

    id: str
    question: str
    default: str
    until: int
    answer: str | None = None
    """Result of the call, after a person has answered or the time is over; None before that."""
    server: str = ""
    """The MCP server that asks during a call; empty for the agent's own question."""
    untraced: str | None = None
    """A person's words that are not traced yet, because the server may not take them."""


class Clarification(Data):
    """The questions of a job."""

    used: int = 0
    pending: Question | None = None
    resolved: int = 0


class Approval(Data):
    """A call that needs a person's approval, and the decision."""

    id: str
    step: int
    call_index: int
    tool: str
    arguments: dict[str, str]
    question: str
    guard: str
    signers: list[str] = Field(default_factory=list)
    """Who may approve it, with a signature; empty: anybody."""
    digest: str = ""
    """Digest of the arguments that is signed."""
    until: int | None = None
    approved: bool | None = None
    reason: str = ""
    by: str = ""
    decided: int | None = None
    """Time of the decision, epoch seconds; None before it."""
    expired: bool = False
    """Whether it was denied because nobody decided in time."""

    @property
    def named_arguments(self) -> str:
        """`old=a.md, new=b.md`; nothing of a plan, which fills pages."""
        shown = {} if self.is_plan else self.arguments
        return ", ".join(f"{name}={value}" for name, value in shown.items())

    @property
    def is_plan(self) -> bool:
        """Whether the plan is approved and no call."""
        return (self.tool, self.guard) == ("plan", "contract")

    def answers(self, guard: str) -> bool:
        """Whether the decision is one on what this guard asks about the current call as well.

        Who approves a plan sees no call, and who approves a call not always what would be pushed.
        """
        return not self.is_plan and (self.guard == guard or guard != PUBLISH)


class ApprovedContract(Data):
    """What a person approved of a plan; losing any of it asks again."""

    phases: list[str] = Field(default_factory=list)
    checks: list[str] = Field(default_factory=list)
    dropped: list[str] = Field(default_factory=list)
    """Ids of the items that were left out."""


class CallStart(Data):
    """Where a call first ran, so that its effects outside keep their key if it runs again."""

    step: int
    call_index: int
    run_id: str
    commit: str
    has_run: bool = False
    """Whether the tool ran to its end, and a person is asked about what it changed."""

    @property
    def effect_key(self) -> str:
        return tool_effect_key(self.run_id, self.commit, self.call_index)


class Review(Data):
    calls: int = 0
    context: int = 0
    verdict: Literal["accepted", "sent back"] | None = None
    findings: str = ""
    bypasses: dict[str, str] = Field(default_factory=dict)
    """Bypasses that the completion used up; restored if the job does not end."""
    on_the_spot: bool = False
    """Whether the end completes what is open, by work of the running phase."""


class Judgement(Data):
    """The judge's verdict on the phase at a checkpoint."""

    commit: str
    decided: bool = False
    refusal: str = ""


class JobRecord(Data):
    """Everything that survives continue-as-new, besides what checkpoints hold."""

    agent: str
    model: str
    title: str
    root: str
    remote: str = ""
    push_failure: str = ""
    """Why the remote lacks checkpoints; empty when it lacks only those of the running step."""
    commit: str
    at: int
    state: JobState
    step: int = 0
    """Model calls begun. Lost checkpoints set it back; a rewind does not."""
    last_phase: int = 1
    """Highest phase number used; no number is used twice."""
    rewinds: int = 0
    last_failure: str = ""
    """Failure of the last attempt; empty once a phase of work has ended."""
    reflected_step: int = 0
    inherited_failure: str = ""
    """Failure of the attempt that this job continues; empty after the reflection on it."""
    refusals: int = 0
    review: Review | None = None
    review_rejections: int = 0
    """Reviews that sent the job back since a person last let it go on."""
    judgement: Judgement | None = None
    judge_refusals: int = 0
    """Refusals by the judge in this phase since a person last let the job go on."""
    guard_refusals: dict[str, int] = Field(default_factory=dict)
    disproved: list[str] = Field(default_factory=list)
    """Newest findings of the system's own runs that contradicted the job's claim of completion."""
    undecided: dict[str, int] = Field(default_factory=dict)
    """Consecutive refusals, by tool, from guards, hooks or verifiers that failed themselves."""
    bypasses: dict[str, str] = Field(default_factory=dict)
    """Guards whose next refusal is bypassed, each with a person's reason."""
    stop_hook_active: bool = False
    """Whether a stop hook has blocked the job's end; false again once the job may end."""
    refused_replies: dict[int, str] = Field(default_factory=dict)
    """Refusals of replies that were not accepted, by step; for every reply that the job may have to
    go back to."""
    tools: list[ToolRoute]
    limits: JobLimits
    search_attributes: list[str] = Field(default_factory=list)
    project: str = ""
    """Id of the project that the job works for; empty without one."""
    team: str = ""
    starter: str = ""
    """Who started the job, as far as its start says."""
    notifying: Notifying | None = None
    """Whom it notifies; None for nobody, and for a job of a project, whose project notifies."""
    has_repository: bool = False
    """Whether its work becomes a branch. For a project's job the branch is the project's."""
    origin: PinnedSource | None = None
    publish: Publish | None = None
    usage: Usage = Field(default_factory=Usage)
    progress: Progress = Field(default_factory=Progress)
    day: str = ""
    """The day in UTC of the last step, as in `2026-11-29`."""
    spent_before: Spend = Field(default_factory=Spend)
    """What was spent before that day."""
    phase_usage: Usage = Field(default_factory=Usage)
    """Usage of the running phase. Like the job's usage, it is never reduced."""
    seconds: float = 0.0
    """Working time in seconds, without waits for people."""
    phase_seconds: float = 0.0
    clock: float = 0.0
    """Time up to which `seconds` is counted, epoch seconds."""
    phases: dict[int, str] = Field(default_factory=dict)
    recent_checkpoints: list[str] = Field(default_factory=list)
    """The newest checkpoints, oldest first: candidates to go back to when one is lost."""
    missing_checkpoint: str = ""
    """The last checkpoint that exists but from which a step found objects missing."""
    calls: list[Call] = Field(default_factory=list)
    next_call: int = 0
    call_start: CallStart | None = None
    failed_call: str = ""
    """The first of these calls that failed, was refused or denied, and why; empty without one."""
    failed_command: str = ""
    handed_over: bool = False
    """Whether the running phase has written the next list."""
    end_tried_step: int = 0
    """The step after which the gate last checked a phase that has handed over."""
    correction: str | None = None
    advice: str = ""
    """Advice of stuck detection, added to the correction; empty once a todo is completed."""
    person_edits: str = ""
    """A person's changes during a pause, until the model has read them."""
    course: Course = Field(default_factory=Course)
    nudges: int = 0
    timer: WaitTimer | None = None
    """Timer of the next call, if that is a `wait` that has begun, or waits for a server's task."""
    pending: Pending | None = None
    """Progress of the next call, if its server has not finished it."""
    helpers: list[Helper] = Field(default_factory=list)
    """Helpers of the next call, if that is a `delegate`, and of the `delegate` calls after it."""
    text_only_replies: int = 0
    refusing_replies: int = 0
    """Consecutive replies that the model marked as refusals."""
    can_require_call: bool = True
    """Whether requests may require a tool call; false after the endpoint has refused one."""
    clarification: Clarification = Field(default_factory=Clarification)
    approval: Approval | None = None
    contract: ApprovedContract | None = None
    """What a person approved of the plan; None before."""
    allowed_drops: list[str] = Field(default_factory=list)
    """Ids of the dropped items that a person allowed to leave out."""
    reopening: list[str] = Field(default_factory=list)
    """Ids of dropped items that a person wants done after all; open again with the next call."""
    approvals: list[Approval] = Field(default_factory=list)
    """The newest decided approvals, with truncated arguments."""
    acts: list[PersonAct] = Field(default_factory=list)
    context: int = 0
    compacted_context: int = 0
    """Tokens right after the last compaction; a further one cannot get below that."""
    hard_compactions: int = 0
    """Consecutive compactions because the endpoint rejected the request as too long."""
    id: str = ""
    run_id: str = ""
    started_at: str = ""
    """Start time of its first run, in ISO 8601."""
    trace_count: int = 0
    traces: list[Trace] = Field(default_factory=list)
    """Traces that are not in the store yet, oldest first."""
    deferred_traces: int = 0
    """Number of these traces that the store failed to take when they were sent."""
    waiting: WaitState | None = None
    pausing: ReceivedSignal | None = None
    """A pause that takes effect once the calls of the current reply have run."""
    paused_from: WaitReason | None = None
    """What the job was waiting for when a person paused it."""
    inbox: list[ReceivedSignal] = Field(default_factory=list)
    notices: list[Notice] = Field(default_factory=list)
    result: JobResult | None = None

    @classmethod
    def begin(cls, prepared: PrepareReply, now: float) -> "JobRecord":
        return cls(
            **{name: getattr(prepared, name) for name in PrepareReply.model_fields},
            step=prepared.state.step,
            last_phase=prepared.state.phase.number,
            phases={prepared.state.phase.number: prepared.commit},
            clock=now,
        )

    @property
    def question_id(self) -> str:
        """The id of a question about the current call.

        It contains the checkpoint, so that after a reset an old answer, which Temporal delivers
        again, fits only the question that it was given to.
        """
        return self.commit[:8]

    @property
    def status(self) -> Status:
        if self.result:
            return self.result.status
        return "waiting" if self.waiting else "running"

    @property
    def wait(self) -> WaitState | None:
        return self.waiting.of_job(self.id) if self.waiting else None

    @property
    def context_limit(self) -> int:
        return self.limits.context_tokens[self.state.phase.kind]

    def route(self, tool: str) -> ToolRoute | None:
        return next((route for route in self.tools if route.name == tool), None)

    @property
    def helper(self) -> Helper | None:
        return next((each for each in self.helpers if each.call == self.next_call), None)

    @property
    def next_correction(self) -> str | None:
        if self.course.narrowed_issue and self.advice:
            return self.advice
        return " ".join(filter(None, [self.correction, self.advice])) or None

    def add_correction(self, text: str) -> None:
        self.correction = f"{self.correction} {text}" if self.correction else text

    def add_usage(self, usage: Usage) -> None:
        self.usage.add(usage)
        self.phase_usage.add(usage)

    @property
    def fits(self) -> bool:
        """Whether a new run can take the record, with unread signals and notes."""
        return len(self.model_dump_json(exclude_defaults=True).encode()) <= MOST_BYTES

    def count_time(self, now: float) -> None:
        passed = max(0.0, now - self.clock)
        self.seconds = round(self.seconds + passed, 3)
        self.phase_seconds = round(self.phase_seconds + passed, 3)
        self.clock = now

    def count_day(self, day: str) -> None:
        """Begin the spend of a new day; the step in which it began counts for the day before."""
        if self.day and day != self.day:
            self.spent_before = self.usage.spend
        self.day = day

    def begin_phase(self) -> None:
        self.phase_usage, self.phase_seconds = Usage(), 0.0
        self.calls, self.next_call, self.timer, self.pending = [], 0, None, None
        self.helpers = []
        self.correction, self.advice = None, ""
        self.failed_call, self.failed_command, self.handed_over = "", "", False
        self.course = self.course.in_new_phase
        self.text_only_replies, self.compacted_context, self.hard_compactions = 0, 0, 0
        self.review, self.reopening = None, []
        self.judgement, self.judge_refusals = None, 0

    def drop_review(self) -> None:
        """Drop the review of an abandoned completion, and restore the bypasses that it used up."""
        if self.review:
            self.bypasses = {**self.review.bypasses, **self.bypasses}
        self.review = None

    def start_call(self) -> CallStart:
        """Return where the next call first ran; if it did not run yet, it starts here."""
        start = self.call_start
        if start is None or (start.step, start.call_index) != (self.step, self.next_call):
            start = CallStart(
                step=self.step, call_index=self.next_call, run_id=self.run_id, commit=self.commit
            )
            self.call_start = start
        return start

    def settle_reply(self, refusal: str) -> None:
        """Record the newest reply's refusal; an empty one means that the reply was accepted."""
        first = self.step - RECENT_CHECKPOINTS
        earlier = {
            step: why for step, why in self.refused_replies.items() if first < step < self.step
        }
        self.refused_replies = {**earlier, self.step: refusal} if refusal else earlier

    def advance_to(self, commit: str, timestamp: int | None = None) -> None:
        """Move to a new checkpoint of that time; without `timestamp` the last date still counts."""
        self.at = self.at if timestamp is None else timestamp
        if commit != self.commit:
            self.commit = commit
            self.recent_checkpoints = [*self.recent_checkpoints, commit][-RECENT_CHECKPOINTS:]
