"""What stuck detection remembers of a phase's replies and tool calls.

It holds fingerprints only, since content never enters Temporal's history. The model's prose has no
fingerprint, because varied prose hides a loop.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from protocol.job_state import Data


class PatternThresholds(Data):
    """Repetitions of a pattern before the model gets a hint, and before it has to rewind."""

    nudge: int = Field(
        ge=2, description="The model gets a hint at this count and at each multiple."
    )
    then: int = Field(
        ge=3,
        description="Only a rewind is accepted from this count on, or the job waits for a person.",
    )

    @model_validator(mode="after")
    def _check_stuck_threshold_order(self) -> Self:
        if self.nudge >= self.then:
            raise ValueError(f"nudge {self.nudge} is not under then {self.then}")
        return self


def _default_course_thresholds(nudge: int, then: int, words: str) -> PatternThresholds:
    default: PatternThresholds = Field(
        default_factory=lambda: PatternThresholds(nudge=nudge, then=then), description=words
    )
    return default


class StuckThresholds(Data):
    """When a phase counts as stuck, by pattern."""

    same_result: PatternThresholds = _default_course_thresholds(
        3, 5, "Calls in a row with the same arguments and the same result; then a rewind."
    )
    same_call_error: PatternThresholds = _default_course_thresholds(
        3, 4, "Calls in a row with the same arguments, an error each time; then a rewind."
    )
    same_error: PatternThresholds = _default_course_thresholds(
        5, 8, "Calls with varied arguments and the same error; then a rewind."
    )
    cycle: PatternThresholds = _default_course_thresholds(
        3, 4, "Rounds of the same 2 to 5 calls with equal results; then a rewind."
    )
    no_action: PatternThresholds = _default_course_thresholds(
        2, 5, "Replies in a row without a tool call; then a rewind."
    )
    refused_todo: PatternThresholds = _default_course_thresholds(
        2, 4, "Refusals of todo_complete for the same reason; then a rewind."
    )
    refused_completion: PatternThresholds = _default_course_thresholds(
        2,
        3,
        "Refusals of job_complete, over phases, while its deliverables stay the same; then the job "
        "waits for review.",
    )
    nothing_new: PatternThresholds = _default_course_thresholds(
        15,
        40,
        "Calls without a new result, a changed file or a completed todo; then the job waits.",
    )
    no_todo: PatternThresholds = _default_course_thresholds(
        60, 150, "Model calls without a completed todo; then the job waits."
    )


class CallRecord(Data):
    """One tool call that was carried out or refused."""

    tool: str
    arguments: str = ""
    result: str = ""
    error: str = ""
    """Fingerprint of the error without its numbers and names; empty without an error."""
    news: bool = False
    """Whether it brought a new result or changed a file."""


class Course(Data):
    """The window of stuck detection. A new phase keeps only the refusals of `job_complete`.

    Values are replaced, never changed in place.
    """

    recent_calls: list[CallRecord] = Field(default_factory=list)
    """The newest calls since the last completed todo, oldest first."""
    seen_results: list[str] = Field(default_factory=list)
    """Fingerprints of the phase's results, the most recent last."""
    polled_results: dict[str, str] = Field(default_factory=dict)
    """Last result of each call of a polling tool."""
    after_wait: bool = False
    """Whether the previous call was `wait`."""
    text_only_replies: int = 0
    """Consecutive replies without a tool call."""
    todo_refusal: str = ""
    """Reason of the last refusal of `todo_complete`; `todo_refusals` counts its repetitions."""
    todo_refusals: int = 0
    completion_refusals: int = 0
    """Refusals of `job_complete`, across phases, since a deliverable last changed."""
    deliverables: str = ""
    """Fingerprint of the deliverables at the last such refusal."""
    calls_without_news: int = 0
    """Calls without a new result, a changed file or a completed todo."""
    replies_since_todo: int = 0
    """Model calls since the last completed todo."""
    unread_nudges: list[str] = Field(default_factory=list)
    """Patterns advised on since the last reply; the model has not read the advice yet."""
    narrowed_issue: str = ""
    """The pattern that narrowed the phase to `todo_rewind` and `todo_complete`."""
    narrowed_step: int = 0
    """The step that narrowed the phase; the narrowing applies to the next step."""

    @property
    def in_new_phase(self) -> Course:
        """The course that a new phase begins with."""
        return Course(completion_refusals=self.completion_refusals, deliverables=self.deliverables)
