"""Requests and results of the activities.

A request names the checkpoint it starts from, and its result the one that was made, if any.
Field names are short because each is written into Temporal's history once a step.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from protocol.state import Data, JobState, Remark, ScopeItem

ReplyVerdict = Literal["", "asks", "claims", "reports"]
"""What a reply without a tool call amounts to: it asks a person something, says in words that work
is complete, or only reports. Empty for a reply with calls."""


LOST_WORKERS = 8
"""Attempts of a regular activity on top of those that its own failures get.

An attempt is also spent when the worker is killed or frozen, and a frozen one takes several tasks
along: those that its open polls are given before the server notices.
"""


class Usage(Data):
    """Tokens and money of model calls; cost in the price table's currency."""

    model_calls: int = 0
    sent_calls: int = 0
    """Tool calls in the model's replies, as its endpoint sent them."""
    tool_calls: int = 0
    """Those of them that were carried out, with or without success: what limits are held against.
    Calls after the one that ends a phase are neither run nor refused."""
    refused_calls: int = 0
    """Those that a gate, a guard, a person or a rule of the phase kept from being carried out."""
    failed_calls: int = 0
    """Those that were carried out and ended in an error."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that the endpoint read from its cache."""
    written_tokens: int = 0
    """Prompt tokens that it put into its cache."""
    estimated_tokens: int = 0
    """Prompt tokens by our own count, to be held against what the endpoint said."""
    cost: float = 0.0

    @property
    def call_details(self) -> str:
        """`34 sent, 4 refused, 2 failed`; empty where all that were sent were run and succeeded."""
        if self.sent_calls == self.tool_calls and not self.failed_calls:
            return ""
        counts = (self.sent_calls, "sent"), (self.refused_calls, "refused")
        parts = [*counts, (self.failed_calls, "failed")]
        return ", ".join(f"{count:,} {word}" for count, word in parts if count)

    def add(self, other: Usage) -> None:
        for name in Usage.model_fields:
            # Rounded, since sums of money in binary fractions drift.
            setattr(self, name, round(getattr(self, name) + getattr(other, name), 9))


class JobPosition(Data):
    """A place in a job: where an activity starts from."""

    root: str
    """Id of the workspaces root the job lives on."""
    remote: str = ""
    """Where its checkpoints are pushed to; with one the job may go on upon any root."""
    commit: str
    at: int
    """Date of the commit to make: epoch seconds of the last regular activity."""
    step: int


class Reply(Data):
    """What an activity answers.

    Keys that it does not have are passed over: histories hold what earlier versions answered.
    """

    model_config = ConfigDict(extra="ignore")


class EmptyReply(Reply):
    """Nothing but that it is done."""


class FolderReply(Reply):
    """The folder was brought up to date."""

    moved_aside: list[str] = Field(default_factory=list)
    """Files of a person that were in its way, now in lost+found."""


class CheckpointReply(Reply):
    """The checkpoint an activity made."""

    commit: str
    at: int = 0
    """Epoch seconds at which the server scheduled this activity (regular activities only)."""


class ModelRequest(JobPosition):
    correction: str | None = None
    """What was wrong with the reply before; shown to the model once, never kept."""
    must_call: bool = False
    """Whether the request requires the reply to call a tool."""
    compaction_exhausted: bool = False
    """Whether the conversation was compacted as often as it is on an endpoint's word."""


MAX_PATH = 120
MAX_CALLS = 32
"""Of a reply; those beyond are dropped, which the next turn says."""


class Call(Data):
    """One tool call of a reply. Its arguments are in the checkpoint's conversation."""

    tool: str
    fingerprint: str = ""
    """Fingerprint of the arguments."""
    path: str | None = None
    """The file it names, in at most `MAX_PATH` characters."""
    seconds: int | None = None
    """For `wait`: how long at most."""
    until: int | None = None
    """For `wait`: epoch seconds of its end, if a time was named."""


class ModelReply(CheckpointReply):
    finish: str
    calls: list[Call] = Field(default_factory=list)
    dropped: int = 0
    """Calls that the reply had beyond those."""
    usage: Usage
    context: int = 0
    """Tokens of the next request, for a reply without calls; else their results say it."""
    model: str = ""
    """Name of the fallback that answered; empty for the model itself."""
    verdict: ReplyVerdict = ""
    guard: str = ""
    """The guard that does not accept it."""
    refusal: str = ""
    """Why not, for the model."""
    trials: list[str] = Field(default_factory=list)
    """Guards on trial that would not have accepted it."""
    behind: str = ""
    """Why the remote lacks the checkpoint that the call started from; empty: it has it."""


class CompactRequest(JobPosition):
    limit: int
    """Tokens that a request may have."""
    hard: bool = False
    """The endpoint said that the request was too long, whatever our count."""


class CompactReply(CheckpointReply):
    context: int
    """Tokens of the next request."""
    cleared: int
    """Results that are placeholders now."""
    folded: int
    """Messages that are folded into the summary now."""
    usage: Usage = Field(default_factory=Usage)


class Pending(Data):
    """A call that its server has not finished: it works on a task, or it asks a person."""

    key: str
    """By which all attempts at the call know each other, whatever run and checkpoint they have."""
    turn: int = 1
    """How often the server has been spoken to about it."""
    begun: float = 0.0
    """Epoch seconds at which its server took the call."""
    task: str = ""
    """The server's id of the task."""
    seconds: float = 0.0
    """Until it is asked again how the task stands."""
    says: str = ""
    """What the server says of the task."""
    server: str = ""
    """The server, where it asks something."""
    asks: str = ""
    """By which it knows its question."""
    question: str = ""
    default: str = ""
    """What holds without an answer, in words."""
    answer: str | None = None
    """What a person said; empty when nobody did."""
    answers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Those to earlier questions of the same turn, as the server takes them."""


class ToolRequest(JobPosition):
    call: int
    """Place of the call in the reply, from 0."""
    refusal: str | None = None
    """Set when a gate or phase rule refused the call: recorded as its result, not run."""
    answer: str | None = None
    """Set when a person or the system has answered the call: recorded as its result, not run."""
    waited_seconds: int | None = None
    """For `wait`: how many seconds it was."""
    guards_passed: bool = False
    """For `wait`: whether guards and hooks let it pass before the time went by."""
    approved: bool = False
    """Whether a person approved the call: what asks lets it pass."""
    bypass: list[str] = Field(default_factory=list)
    """Guards that a person let one refusal of be passed over."""
    pending: Pending | None = None
    """The call is under way: how far it was."""
    gives_up: bool = False
    """Nobody wants the task any more: its server is informed."""
    helper: str = ""
    """For `delegate`: hex id of the tree of the helper that has answered."""


class GuardOutcome(Reply):
    """What guards and hooks made of a call; what the workflow has to know of it."""

    guard: str = ""
    """Who refused it, or asks."""
    hook: bool = False
    """Whether that is a hook."""
    undecided: bool = False
    """Whether who refused failed itself, such as a verifier that did not end in time."""
    asks: str = ""
    """What a person is asked; the call was neither run nor recorded."""
    bypassed_guard: str = ""
    """The guard whose refusal was passed over."""
    trials: list[str] = Field(default_factory=list)
    """Guards on trial that would have refused it."""
    remarks: list[str] = Field(default_factory=list)
    """What else was decided, a line each, for people."""


class ToolReply(CheckpointReply, GuardOutcome):
    ok: bool
    rewritten_arguments: dict[str, str] = Field(default_factory=dict)
    """Of a call about which a person is asked: the arguments that guards rewrote, as text."""
    pending: Pending | None = None
    """The call is not finished, and nothing of it is recorded yet."""
    fingerprint: str = ""
    """Fingerprint of the result."""
    error_fingerprint: str = ""
    """The same of an error without its numbers and names."""
    changed: bool = False
    """Whether a file changed."""
    context: int = 0
    """Tokens of the next request, by our own count."""
    error: str | None = None
    """First line of what went wrong, bounded."""
    command_failure: str = ""
    """How a command ended that did not succeed."""
    scope: list[ScopeItem] = Field(default_factory=list)
    """Scope items that the call added or changed."""


class TakeFolderRequest(JobPosition):
    by: str = ""
    """Who edited it, as far as is known: who lets the job go on."""


class RemarksRequest(JobPosition):
    """What people say to the agent, to be kept with its instructions."""

    remarks: list[Remark]
    items: list[str] = Field(default_factory=list)
    """Those of them that are one more thing to cover."""


class RemarksReply(CheckpointReply):
    remarks: list[Remark]
    """All that people have said to the job."""
    scope: list[ScopeItem] = Field(default_factory=list)
    """Items that were added to the ledger."""
    refused: str = ""
    """Why one was not added."""
    context: int = 0
    """Tokens of the next request."""


class ShowCallRequest(JobPosition):
    call: int


class ShowCallReply(Reply):
    """What a call of the newest reply asks for, for people."""

    arguments: dict[str, str] = Field(default_factory=dict)
    """Each as text, together bounded."""
    error: str | None = None
    """What is wrong with the arguments, worded for the model."""


class RecoverRequest(Data):
    root: str
    remote: str = ""
    candidates: list[str]
    """Commit ids, newest first."""


class RecoverReply(CheckpointReply):
    state: JobState
    calls: list[Call] = Field(default_factory=list)
    """Of the newest reply, if one of them is still to be made or the phase may end with it."""
    next_call: int = 0
    failed_call: int | None = None
    """Place of the first of them that failed."""
    failure: str = ""
    """Of what it failed."""
    handed_over: bool = False
    """Whether the running phase has written the next list."""


class WriteErrorRequest(JobPosition):
    """What went wrong in the machinery, for `errors/`."""

    text: str
    call: int | None = None
    """Place of the call that it went wrong with; None where it was none."""
    cause: str = ""
    """What was raised, and what had raised that, a line each."""


class ImportReply(CheckpointReply):
    """What a person's edits of a paused job became."""

    notes: list[str] = Field(default_factory=list)
    edits: str = ""
    """What the person changed, as the model reads it: paths and a bounded diff."""
    paths: str = ""
    """The paths alone, the first few."""
    scope: list[ScopeItem] = Field(default_factory=list)
    """Scope items that the edits completed."""
