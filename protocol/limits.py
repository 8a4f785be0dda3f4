"""Limits on what a job may use, and the figures that workflow code enforces."""

from typing import Annotated, Literal, Self

from pydantic import Field

from protocol.data_model import Data
from protocol.phase import PhaseKind
from protocol.stuck_thresholds import StuckThresholds
from protocol.usage import Price

Count = Annotated[int, Field(strict=True, gt=0, le=10**12)]
Amount = Annotated[float, Field(strict=True, gt=0, le=10**12, allow_inf_nan=False)]
LEAST = {"model_calls": 2, "tool_calls": 1, "tokens": 1000, "cost": 1e-6, "seconds": 1}
"""Smallest limits that are worth starting a job with."""


class Budget(Data):
    """What a job or one of its phases may use; null means no limit."""

    model_calls: Count | None = Field(None, description="Model calls, archive summaries included.")
    tool_calls: Count | None = Field(
        None, description="Tool calls that are run; not those refused."
    )
    tokens: Count | None = Field(None, description="Tokens sent and received.")
    cost: Amount | None = Field(None, description="Money, in the currency of `prices`.")
    seconds: Count | None = Field(
        None, description="Seconds from the start; time spent waiting for people does not count."
    )

    def lowered_to(self, other: "Budget") -> Self:
        lower = {
            key: value
            for key, value in other.model_dump(exclude_none=True).items()
            if (own := getattr(self, key)) is None or value < own
        }
        return self.model_copy(update=lower)


class TrialShare(Data):
    """What a run of a trial may use of the limits of the whole trial."""

    trial: str = Field(min_length=1, max_length=1000)
    limits: Budget = Field(default_factory=Budget)


class ReviewLimits(Data):
    """Limits of the review of a completion."""

    attempts: int
    """Most times that the job is sent back."""
    calls: int
    projects: bool = False


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
    reflection: bool = False
    review: ReviewLimits | None = None
    approve_plan: bool = False
    """Whether a person approves the plan before the first work, and what takes away from it."""
    drop_share: float = 0.2
    """Share of the original items that may be dropped without a person."""
    drops_beyond: Literal["ask", "refuse", "list"] = "ask"
    """What happens when more are: a person decides, the end is refused, or the result lists it."""
    judge: JudgeLimits | None = None
    price: Price | None = None
    stuck: StuckThresholds = Field(default_factory=StuckThresholds)
