"""Request and result of a job's start, and the limits that workflow code enforces."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from protocol.course import StuckThresholds
from protocol.handoffs import ProjectLink
from protocol.job_state import Data, JobState, PhaseKind
from protocol.limits import Budget, Price
from protocol.notifications import Notifying
from protocol.payloads import Fork
from protocol.repository import PinnedSource, Publish, RepositoryStart
from protocol.requests import CheckpointReply, JobPosition
from protocol.tools import ToolRoute

NEVER_BEGAN = "cancelled before it began"
"""Prefix of the memo's state when a start was cancelled before anything was created."""


class CancelStartRequest(Data):
    """Requests the cancellation of a job that has not begun; also the reply."""

    reason: str


class PrepareRequest(Data):
    agent: str = ""
    """The agent's name; empty only for a fork, which keeps the agent of the original job."""
    instructions: str = ""
    documents: list[str] = Field(default_factory=list)
    items: list[str] = Field(default_factory=list)
    set: dict[str, object] = Field(default_factory=dict)
    fork: Fork | None = None
    repository: RepositoryStart | None = None
    publish: Publish | None = None
    project: ProjectLink | None = None
    chain: str = ""
    """First run id of the workflow: distinguishes a retry or reset from a new job with the same
    id."""


class ReviewLimits(Data):
    """Limits of the review of a completion."""

    attempts: int
    """Rejections before the job waits for a person."""
    calls: int
    """Most replies of one review."""


class JudgeLimits(Data):
    """Limits of the judge that decides whether a phase may end."""

    attempts: int
    """Refusals in a phase before the job waits for a person."""
    phases: list[PhaseKind]


class JobLimits(Data):
    """Figures of the agent's configuration that workflow code enforces."""

    min_todos: int = 5
    max_todos: int = 20
    summary_calls: int = 8
    """Up to this many model calls, a tactical phase's archive page is made from notes alone."""
    single_list: bool = False
    """Whether the agent brings a single todo list, after which comes the final phase."""
    rewinds: int = 5
    clarifications: int = 1
    clarification_hours: float = 24
    approve_hours: float | None = None
    history_events: int = 1000
    helper_calls: int = 20
    tool_attempts: int = 4
    model_seconds: int = 600
    context_tokens: dict[PhaseKind, int] = Field(default_factory=dict)
    """Tokens of a request at which the conversation is compacted, by kind of phase."""
    workspace_tokens: int = 4000
    job: Budget = Field(default_factory=Budget)
    phase: Budget = Field(default_factory=lambda: Budget(model_calls=500))
    output_tokens: int = 8000
    """Most tokens of one reply."""
    reflection: bool = False
    """Whether the agent reflects on failed attempts."""
    review: ReviewLimits | None = None
    judge: JudgeLimits | None = None
    price: Price | None = None
    """The model's price; None when unknown, and then cost has no limit."""
    stuck: StuckThresholds = Field(default_factory=StuckThresholds)


class PrepareReply(CheckpointReply):
    root: str
    remote: str = ""
    """Where checkpoints are pushed; empty for nowhere."""
    agent: str
    model: str
    title: str
    state: JobState
    tools: list[ToolRoute]
    limits: JobLimits
    context: int = 0
    """Tokens of the first request."""
    notifying: Notifying | None = None
    has_repository: bool = False
    origin: PinnedSource | None = None
    """The repository or folder that it works on."""
    publish: Publish | None = None
    notices: list[str] = Field(default_factory=list)
    """Notices for people about unavailable features, one line each."""
    search_attributes: list[str] = Field(default_factory=list)
    """Our search attributes that the server has registered; only those may be set."""


class SetModelRequest(JobPosition):
    """New model settings from a person for a waiting job."""

    set: dict[str, Any]
    """New values by dotted key."""


class SetModelReply(CheckpointReply):
    """The model's settings after the change."""

    model: str
    """The name of the model."""
    limits: JobLimits
    tools: list[ToolRoute] = Field(default_factory=list)
    """The routes of all tools if a tool came or went with the change, else empty."""
    changes: list[str] = Field(default_factory=list)
    """The changes, one line each, for people."""
