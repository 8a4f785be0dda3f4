"""When a phase counts as stuck: how often each pattern may repeat."""

from typing import Self

from pydantic import Field, model_validator

from protocol.data_model import Data


class PatternThresholds(Data):
    """Repetitions of a pattern before the model gets a hint, and before it has to rewind."""

    nudge: int = Field(
        ge=2, description="The model gets a hint at this count and at each multiple."
    )
    then: int = Field(
        ge=3,
        description="Only a rewind is accepted from this count on, or the job waits for a person.",
    )
    wait: int | None = Field(
        None, ge=4, description="The job waits for a person from this count on; null for never."
    )

    @model_validator(mode="after")
    def _check_stuck_threshold_order(self) -> Self:
        if self.nudge >= self.then:
            raise ValueError(f"nudge {self.nudge} is not under then {self.then}")
        if self.wait is not None and self.then >= self.wait:
            raise ValueError(f"then {self.then} is not under wait {self.wait}")
        return self


def _default_thresholds(
    nudge: int, then: int, words: str, wait: int | None = None
) -> PatternThresholds:
    default: PatternThresholds = Field(
        default_factory=lambda: PatternThresholds(nudge=nudge, then=then, wait=wait),
        description=words,
    )
    return default


class StuckThresholds(Data):
    """When a phase counts as stuck, by pattern."""

    same_result: PatternThresholds = _default_thresholds(
        3, 5, "Calls in a row with the same arguments and the same result; then a rewind."
    )
    same_call_error: PatternThresholds = _default_thresholds(
        3, 4, "Calls in a row with the same arguments, an error each time; then a rewind."
    )
    same_error: PatternThresholds = _default_thresholds(
        5, 8, "Calls with varied arguments and the same error; then a rewind."
    )
    cycle: PatternThresholds = _default_thresholds(
        3, 4, "Rounds of the same 2 to 5 calls with equal results; then a rewind."
    )
    no_action: PatternThresholds = _default_thresholds(
        2, 5, "Replies in a row without a tool call; then a rewind."
    )
    refused_todo: PatternThresholds = _default_thresholds(
        2, 4, "Refusals of todo_complete for the same reason; then a rewind."
    )
    refused_completion: PatternThresholds = _default_thresholds(
        2,
        3,
        "Refusals of job_complete, over phases, while its deliverables stay the same; then the job "
        "waits for review.",
    )
    nothing_new: PatternThresholds = _default_thresholds(
        15,
        40,
        "Calls without a new result, a changed file or a completed todo; then the job waits.",
    )
    no_todo: PatternThresholds = _default_thresholds(
        60, 150, "Model calls without a completed todo; then the job waits."
    )
    idle_phases: PatternThresholds = _default_thresholds(
        2,
        3,
        "Phases of work in a row of which nothing came, or whose list, scope and plan equal those "
        "of an earlier one; then a rewind, and at `wait` the job waits.",
        5,
    )
