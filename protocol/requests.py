"""Requests and results of the activities.

A request names the checkpoint that it starts from, its result the new checkpoint, if any. Field
names are short because each is written into Temporal's history at every step.
"""

from __future__ import annotations

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
    """The position in a job from which an activity starts."""

    root: str
    """Id of the workspaces root with the job."""
    remote: str = ""
    """Where its checkpoints are pushed; with a remote the job may continue on any root."""
    commit: str
    at: int
    """Date of the commit to make: epoch seconds of the last regular activity."""
    step: int


class Reply(Data):
    """Base of activity results.

    Unknown keys are ignored, because histories contain results of earlier versions.
    """

    model_config = ConfigDict(extra="ignore")


class EmptyReply(Reply):
    """A result without content."""


class WatchRetriesRequest(Data):
    """Watches other activities of the workflow until they wait for their endpoint."""

    failing: bool = False
    """Whether the endpoint is known to fail, by calls before."""


class RetriedCall(Reply):
    """An activity that the endpoint of a model has failed, and that the server tries again."""

    activity: str = ""
    message: str = ""
    """What the last attempt met with; empty if the endpoint was known to fail."""
    helps: str = ""
    """What may help against it, as the end of a sentence."""
    unfinished: dict[str, Usage] = Field(default_factory=dict)
    """What replies that broke off have used in its attempts and in those of calls beside it, by
    activity id."""


class FolderReply(Reply):
    """The folder was brought up to date."""

    moved_aside: list[str] = Field(default_factory=list)
    """Files of a person that were in the way, now in lost+found."""


class CheckpointReply(Reply):
    """The checkpoint that an activity made."""

    commit: str
    at: int = 0
    """Epoch seconds at which the server scheduled this activity (regular activities only)."""


class ModelRequest(JobPosition):
    correction: str | None = None
    """What was wrong with the last reply; shown to the model once, never stored."""
    must_call: bool = False
    """Whether the request requires the reply to call a tool."""
    only: list[str] = Field(default_factory=list)
    """The tools that are offered; empty for those of the phase."""
    compaction_exhausted: bool = False
    """Whether the endpoint's rejections have used up the allowed compactions."""


MAX_PATH = 120
MAX_CALLS = 32
"""Most calls of a reply; further ones are dropped, and the next turn says so."""


class Call(Data):
    """One tool call of a reply. Its arguments are in the checkpoint's conversation."""

    tool: str
    fingerprint: str = ""
    """Fingerprint of the arguments."""
    path: str | None = None
    """The file it names, in at most `MAX_PATH` characters."""
    seconds: int | None = None
    """For `wait`: most seconds."""
    until: int | None = None
    """For `wait`: its end in epoch seconds, if the call names a time."""


class ModelReply(CheckpointReply):
    finish: str
    calls: list[Call] = Field(default_factory=list)
    dropped: int = 0
    """Number of calls that were dropped from the reply."""
    usage: Usage
    context: int = 0
    """Tokens of the next request, for a reply without calls; otherwise the call results have it."""
    model: str = ""
    """The fallback model that answered; empty for the configured model."""
    verdict: ReplyVerdict = ""
    refused_words: str = ""
    """Beginning of a reply that the model marked as a refusal, for people."""
    guard: str = ""
    """The guard that refused the reply; empty when it was accepted."""
    refusal: str = ""
    """Reason of the refusal, for the model."""
    trials: list[str] = Field(default_factory=list)
    """Guards on trial that would have refused the reply."""
    behind: str = ""
    """Why the remote lacks the checkpoint that the call started from; empty when it has it."""


class CompactRequest(JobPosition):
    limit: int
    """Most tokens of a request."""
    hard: bool = False
    """Whether the endpoint rejected the request as too long, regardless of our count."""


class CompactReply(CheckpointReply):
    context: int
    """Tokens of the next request."""
    cleared: int
    """Number of results replaced by placeholders."""
    folded: int
    """Number of messages folded into the summary."""
    unchanged: bool = False
    """Whether the request stays as it was: there is nothing left to clear or to fold."""
    usage: Usage = Field(default_factory=Usage)


class Pending(Data):
    """A call that its server has not finished: it works on a task or asks a person."""

    key: str
    """Identifies the call across attempts, runs and checkpoints."""
    turn: int = 1
    """Number of requests to the server about the call."""
    begun: float = 0.0
    """When the server accepted the call, epoch seconds."""
    task: str = ""
    """The server's id of the task."""
    seconds: float = 0.0
    """Seconds until the task's status is polled again."""
    says: str = ""
    """The server's status message about the task."""
    server: str = ""
    """The server that asks a question; empty when none does."""
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
    """Index of the call in the reply, from 0."""
    refusal: str | None = None
    """Refusal by a gate or phase rule; recorded as the result, and the call is not run."""
    refused_by: RefusedBy = ""
    answer: str | None = None
    """Answer by a person or the system; recorded as the result, and the call is not run."""
    reopen: list[str] = Field(default_factory=list)
    """Ids of dropped items that a person wants done after all."""
    waited_seconds: int | None = None
    """For `wait`: seconds waited."""
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
    """Return the key of the effects outside of a call that first runs here.

    It differs after a reset or rewind.
    """
    return f"{run_id}.{commit[:12]}.{call}"


class GuardOutcome(Reply):
    """Decision of guards and hooks on a call, as far as the workflow needs it."""

    guard: str = ""
    """The guard or hook that refused the call or asks a person."""
    hook: bool = False
    """Whether `guard` is a hook."""
    finding: str = ""
    """Why the guard refused, bounded; empty if it asks a person."""
    undecided: bool = False
    """Whether the guard refused because it failed itself, such as by a verifier's time-out."""
    asks: str = ""
    """The question to a person; nothing of the call was recorded."""
    bypassed_guard: str = ""
    """The guard whose refusal was bypassed."""
    trials: list[str] = Field(default_factory=list)
    """Guards on trial that would have refused the call."""
    remarks: list[str] = Field(default_factory=list)
    """Other decisions for people, one line each."""


class ToolReply(CheckpointReply, GuardOutcome):
    ok: bool
    rewritten_arguments: dict[str, str] = Field(default_factory=dict)
    """If a person is asked about the call: the arguments that guards rewrote, as text."""
    has_run: bool = False
    """If a person is asked about the call: whether it is about what the tool has changed."""
    pending: Pending | None = None
    """Progress of an unfinished call; nothing of it is recorded yet."""
    fingerprint: str = ""
    """Fingerprint of the result."""
    refused_by: RefusedBy = ""
    tool: str = ""
    """The tool that was called, if the activity has another name."""
    error_fingerprint: str = ""
    """Fingerprint of the error without its numbers and names."""
    changed: bool = False
    """Whether a file changed."""
    context: int = 0
    """Tokens of the next request, by our own count."""
    error: str | None = None
    """First line of the error, bounded."""
    command_failure: str = ""
    """How a failed command ended; empty when it succeeded."""
    scope: list[ScopeItem] = Field(default_factory=list)
    """Scope items that the call added or changed."""


class TakeFolderRequest(JobPosition):
    by: str = ""
    """The presumed editor: the person who let the job go on."""


class RemarksRequest(JobPosition):
    """Remarks of people to the agent, to be stored with its instructions."""

    remarks: list[Remark]
    items: list[str] = Field(default_factory=list)
    """Remarks that add a scope item."""


class RemarksReply(CheckpointReply):
    remarks: list[Remark]
    """All remarks of people to the job."""
    scope: list[ScopeItem] = Field(default_factory=list)
    """Items added to the ledger."""
    refused: str = ""
    """Why an item was not added; empty when all were."""
    context: int = 0
    """Tokens of the next request."""


class ShowCallRequest(JobPosition):
    call: int


class ShowCallReply(Reply):
    """Arguments of a call of the newest reply, for people."""

    arguments: dict[str, str] = Field(default_factory=dict)
    """Arguments as text, bounded in total."""
    error: str | None = None
    """What is wrong with the arguments, for the model; None when they are valid."""


class RecoverRequest(Data):
    root: str
    remote: str = ""
    candidates: list[str]
    """Commit ids, newest first."""


class RecoverReply(CheckpointReply):
    state: JobState
    calls: list[Call] = Field(default_factory=list)
    """Calls of the newest reply, if one has still to run or the phase may end with it."""
    next_call: int = 0
    failed_call: int | None = None
    """Index of the first failed call."""
    failure: str = ""
    """Why it failed."""
    handed_over: bool = False
    """Whether the running phase has written the next list."""


class WriteErrorRequest(JobPosition):
    """An internal error to be written to `errors/`."""

    text: str
    call: int | None = None
    """Index of the call concerned; None without one."""
    cause: str = ""
    """The exception and its causes, one line each."""


class ImportReply(CheckpointReply):
    """Result of importing a person's edits to a paused job."""

    notes: list[str] = Field(default_factory=list)
    edits: str = ""
    """The edits as shown to the model: paths and a bounded diff."""
    paths: str = ""
    """The first few edited paths."""
    scope: list[ScopeItem] = Field(default_factory=list)
    """Scope items that the edits completed."""
