"""Requests and results of the activities.

A request names the checkpoint that it starts from, its result the new checkpoint, if any. Field
names are short because each is written into Temporal's history at every step.
"""

from typing import Any, Literal

from pydantic import ConfigDict, Field

from protocol.data_model import Data
from protocol.job_state import JobState, Remark
from protocol.scope_ledger import ScopeItem
from protocol.usage import Usage

ReplyVerdict = Literal["", "asks", "claims", "reports", "refuses"]
"""Class of a reply without a tool call: it asks a person, claims that work is complete, only
reports, or is marked as the model's refusal. Empty for a reply with calls."""


LOST_WORKERS = 8
"""Attempts of a regular activity in addition to those for its own failures.

A killed or frozen worker also costs an attempt. A frozen one costs several, since its open polls
receive further tasks before the server notices.
"""


class JobPosition(Data):
    root: str
    """Id of the workspaces root with the job."""
    remote: str = ""
    """Where its checkpoints are pushed; with a remote the job may continue on any root."""
    commit: str
    at: int
    """Date of the commit to make: epoch seconds of the last regular activity."""
    step: int


class Reply(Data):
    """Base of activity results; unknown keys are those of earlier versions in histories."""

    model_config = ConfigDict(extra="ignore")


class EmptyReply(Reply):
    """A result without content."""


class WatchRetriesRequest(Data):
    failing: bool = False
    """Whether the endpoint is known to fail, by calls before."""


class RetriedCall(Reply):
    """An activity that the endpoint of a model has failed, and that the server tries again."""

    activity: str = ""
    message: str = ""
    """What the last attempt met with; empty if the endpoint was known to fail."""
    helps: str = ""
    unfinished: dict[str, Usage] = Field(default_factory=dict)
    """What replies that broke off have used in its attempts and in those of calls beside it, by
    activity id."""


class FolderReply(Reply):
    moved_aside: list[str] = Field(default_factory=list)


class CheckpointReply(Reply):
    commit: str
    at: int = 0
    """Epoch seconds at which the server scheduled this activity (regular activities only)."""


class ModelRequest(JobPosition):
    correction: str | None = None
    """What was wrong with the last reply; shown to the model once, never stored."""
    must_call: bool = False
    """Whether the request requires the reply to call a tool."""
    only: list[str] = Field(default_factory=list)
    compaction_exhausted: bool = False
    """Whether the endpoint's rejections have used up the allowed compactions."""


MAX_PATH = 120
MAX_CALLS = 32
"""Most calls of a reply; further ones are dropped, and the next turn says so."""


class Call(Data):
    """One tool call of a reply. Its arguments are in the checkpoint's conversation."""

    tool: str
    fingerprint: str = ""
    path: str | None = None
    seconds: int | None = None
    """For `wait`: most seconds."""
    until: int | None = None
    """For `wait`: its end in epoch seconds, if the call names a time."""

    @property
    def line(self) -> str:
        return f"{self.tool[:60]} {self.path}" if self.path else self.tool[:60]


class ModelReply(CheckpointReply):
    finish: str
    calls: list[Call] = Field(default_factory=list)
    dropped: int = 0
    usage: Usage
    context: int = 0
    """Tokens of the next request, for a reply without calls; otherwise the call results have it."""
    model: str = ""
    """The fallback model that answered; empty for the configured model."""
    verdict: ReplyVerdict = ""
    refused_words: str = ""
    """Beginning of a reply that the model marked as a refusal, for people."""
    guard: str = ""
    refusal: str = ""
    trials: list[str] = Field(default_factory=list)
    behind: str = ""
    """Why the remote lacks the checkpoint that the call started from; empty when it has it."""


class CompactRequest(JobPosition):
    limit: int
    hard: bool = False
    """Whether the endpoint rejected the request as too long, regardless of our count."""


class CompactReply(CheckpointReply):
    context: int
    cleared: int
    folded: int
    unchanged: bool = False
    """Whether the request stays as it was: there is nothing left to clear or to fold."""
    usage: Usage = Field(default_factory=Usage)


class Pending(Data):
    key: str
    """Identifies the call across attempts, runs and checkpoints."""
    turn: int = 1
    """Number of requests to the server about the call."""
    begun: float = 0.0
    """When the server accepted the call, epoch seconds."""
    task: str = ""
    seconds: float = 0.0
    says: str = ""
    """The server's status message about the task."""
    server: str = ""
    asks: str = ""
    """The server's id of its question."""
    question: str = ""
    default: str = ""
    """The default without an answer, in words."""
    answer: str | None = None
    """A person's answer; empty when nobody answered."""
    answers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Answers to earlier questions of the same turn, in the server's format."""


RefusedBy = Literal[
    "",
    "completion",
    "contract",
    "gate",
    "guard",
    "held back",
    "judge",
    "nobody",
    "person",
    "phase",
    "phase end",
    "reply",
    "review",
    "stuck",
    "tools",
]
"""What refused a call before its tool ran; `gate` is one without a name of its own."""


class ToolRequest(JobPosition):
    call: int
    refusal: str | None = None
    """Refusal by a gate or phase rule; recorded as the result, and the call is not run."""
    refused_by: RefusedBy = ""
    answer: str | None = None
    """Answer by a person or the system; recorded as the result, and the call is not run."""
    reopen: list[str] = Field(default_factory=list)
    """Ids of dropped items that a person wants done after all."""
    waited_seconds: int | None = None
    guards_passed: bool = False
    """For `wait`: whether guards and hooks passed it before the wait began."""
    approved: bool = False
    """Whether a person approved the call; guards that ask then pass it."""
    bypass: list[str] = Field(default_factory=list)
    """Guards of which a person bypassed one refusal."""
    effect_key: str = ""
    """Key of the call's effects outside, if it first ran at another checkpoint."""
    has_run: bool = False
    """Whether the tool has run, perhaps on another host, before a person was asked."""
    pending: Pending | None = None
    """Progress of a call that was already begun; None for a new call."""
    gives_up: bool = False
    """Whether to abandon the task and inform its server."""
    helper: str = ""
    """For `delegate`: hex id of the finished helper's tree."""


def tool_effect_key(run_id: str, commit: str, call: int) -> str:
    """Return the key of a call's first effects outside; it differs after a reset or rewind."""
    return f"{run_id}.{commit[:12]}.{call}"


class GuardOutcome(Reply):
    guard: str = ""
    hook: bool = False
    finding: str = ""
    """Why the guard refused, bounded; empty if it asks a person."""
    undecided: bool = False
    """Whether the guard refused because it failed itself, such as by a verifier's time-out."""
    asks: str = ""
    bypassed_guard: str = ""
    trials: list[str] = Field(default_factory=list)
    remarks: list[str] = Field(default_factory=list)


class ToolReply(CheckpointReply, GuardOutcome):
    ok: bool
    rewritten_arguments: dict[str, str] = Field(default_factory=dict)
    """If a person is asked about the call: the arguments that guards rewrote, as text."""
    has_run: bool = False
    """If a person is asked about the call: whether it is about what the tool has changed."""
    pending: Pending | None = None
    fingerprint: str = ""
    refused_by: RefusedBy = ""
    tool: str = ""
    """The tool that was called, if the activity has another name."""
    error_fingerprint: str = ""
    changed: bool = False
    context: int = 0
    error: str | None = None
    command_failure: str = ""
    """How a failed command ended; empty when it succeeded."""
    scope: list[ScopeItem] = Field(default_factory=list)
    """Scope items that the call added or changed."""
    passed_over: bool = False
    """Whether the todo that it completed is not done: its file did not change."""
    ticked: list[int] = Field(default_factory=list)
    """Todos that were passed over before, and whose file the call changed."""


class TakeFolderRequest(JobPosition):
    by: str = ""


class RemarksRequest(JobPosition):
    """Remarks of people to the agent, to be stored with its instructions."""

    remarks: list[Remark]
    items: list[str] = Field(default_factory=list)


class RemarksReply(CheckpointReply):
    remarks: list[Remark]
    scope: list[ScopeItem] = Field(default_factory=list)
    refused: str = ""
    """Why an item was not added; empty when all were."""
    context: int = 0


class ShowCallRequest(JobPosition):
    call: int


class ShowCallReply(Reply):
    arguments: dict[str, str] = Field(default_factory=dict)
    """Arguments as text, bounded in total."""
    digest: str = ""
    """Of the complete arguments, if the approval has to be signed."""
    signers: list[str] = Field(default_factory=list)
    """Who may approve the call, with a signature; empty: anybody."""
    error: str | None = None
    """What is wrong with the arguments, for the model; None when they are valid."""


class CheckApprovalRequest(JobPosition):
    statement: str
    """The text that is to be signed."""
    signature: str
    tool: str
    starter: str = ""
    """Who started the job, as far as its start says."""


class CheckApprovalReply(Data):
    by: str = ""
    """Who signed it."""
    refused: str = ""
    """Why the signature does not approve the call; empty if it does."""


class RecoverRequest(Data):
    root: str
    remote: str = ""
    candidates: list[str]


class RecoverReply(CheckpointReply):
    state: JobState
    calls: list[Call] = Field(default_factory=list)
    """Calls of the newest reply, if one has still to run or the phase may end with it."""
    next_call: int = 0
    failed_call: int | None = None
    failure: str = ""
    handed_over: bool = False


class WriteErrorRequest(JobPosition):
    text: str
    call: int | None = None
    cause: str = ""


class ImportReply(CheckpointReply):
    notes: list[str] = Field(default_factory=list)
    edits: str = ""
    """The edits as shown to the model: paths and a bounded diff."""
    paths: str = ""
    scope: list[ScopeItem] = Field(default_factory=list)


class ForgetRequest(Data):
    job: str = Field("", max_length=1000)
    """Job id; empty for every job that has been closed for longer than its `keep_days`."""
    traces: bool = False
    requirements: bool = False
    """Whether to delete its requirements too, decided or not."""


class ForgetResult(Data):
    jobs: list[str] = Field(default_factory=list)
    """The first hundred forgotten jobs."""
    count: int = 0
    notes: list[str] = Field(default_factory=list)
    """What was not deleted and why, one line each."""
