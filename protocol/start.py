"""Request and result of the start of a job, and the figures that workflow code enforces."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from protocol.course import StuckThresholds
from protocol.handoffs import ProjectLink
from protocol.limits import Budget, Price
from protocol.notifications import Notifying
from protocol.payloads import Fork
from protocol.repository import Publish, RepositoryStart
from protocol.requests import CheckpointReply, JobPosition
from protocol.state import Data, JobState, PhaseKind
from protocol.tools import ToolRoute

NEVER_BEGAN = "cancelled before it began"
"""How the state of a start begins in the memo that was cancelled with nothing made."""


class CancelStartRequest(Data):
    """Asks for the cancellation of a job that has not begun; also what comes back."""

    reason: str


class PrepareRequest(Data):
    agent: str = ""
    """Empty only for a fork, which keeps the agent of the first job."""
    instructions: str = ""
    documents: list[str] = Field(default_factory=list)
    items: list[str] = Field(default_factory=list)
    set: dict[str, object] = Field(default_factory=dict)
    fork: Fork | None = None
    repository: RepositoryStart | None = None
    publish: Publish | None = None
    project: ProjectLink | None = None
    chain: str = ""
    """First run id of the workflow: distinguishes a retry or a reset from another job of the same
    id."""


class ReviewLimits(Data):
    """How a completion is reviewed."""

    attempts: int
    """Times a job may be sent back before it waits for a person."""
    calls: int
    """Replies that one review may take."""


class JudgeLimits(Data):
    """When a judge is asked whether a phase may end."""

    attempts: int
    """Noes in a phase before the job waits for a person."""
    phases: list[PhaseKind]


class JobLimits(Data):
    """Figures of the agent's configuration that workflow code enforces."""

    min_todos: int = 5
    max_todos: int = 20
    summary_calls: int = 8
    """Model calls of a tactical phase up to which its archive page is made from notes alone."""
    single_list: bool = False
    """Whether the work is one list that the agent brings: what follows it is the final phase."""
    rewinds: int = 5
    clarifications: int = 1
    clarification_hours: float = 24
    approve_hours: float | None = None
    history_events: int = 1000
    helper_calls: int = 20
    tool_attempts: int = 4
    model_seconds: int = 600
    context_tokens: dict[PhaseKind, int] = Field(default_factory=dict)
    """Size of a request at which the conversation is compacted, by kind of phase."""
    workspace_tokens: int = 4000
    job: Budget = Field(default_factory=Budget)
    phase: Budget = Field(default_factory=lambda: Budget(model_calls=500))
    output_tokens: int = 8000
    """The most that one reply may have."""
    reflection: bool = False
    """Whether attempts that fail are reflected on."""
    review: ReviewLimits | None = None
    judge: JudgeLimits | None = None
    price: Price | None = None
    """The model's; None when it is not known, and then there is no limit on cost."""
    stuck: StuckThresholds = Field(default_factory=StuckThresholds)


class PrepareReply(CheckpointReply):
    root: str
    remote: str = ""
    """Where checkpoints are pushed to."""
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
    publish: Publish | None = None
    notices: list[str] = Field(default_factory=list)
    """What the job does without, a line each, for people."""
    search_attributes: list[str] = Field(default_factory=list)
    """Names of ours that the server has registered; only those may be set."""


class SetModelRequest(JobPosition):
    """What a person gives a job that waits."""

    set: dict[str, Any]
    """Values by dotted key."""


class SetModelReply(CheckpointReply):
    """The model's settings as they are now."""

    model: str
    """The name of the model."""
    limits: JobLimits
    changes: list[str] = Field(default_factory=list)
    """What is otherwise than before, a line each, for people."""
