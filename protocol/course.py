"""A phase's course: what of its replies and tool calls stuck detection remembers.

Only fingerprints, since content never enters Temporal's history, and of no text that the model
said: varied prose hides a loop.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from protocol.state import Data


class PatternThresholds(Data):
    """How often a pattern may come before the model gets advice, and before the phase is
    narrowed."""

    nudge: int = Field(ge=2, description="The model is told, and again at each multiple.")
    then: int = Field(ge=3, description="The phase goes back, or the job waits for a person.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.nudge >= self.then:
            raise ValueError(f"nudge {self.nudge} is not under then {self.then}")
        return self


def _default_thresholds(nudge: int, then: int, words: str) -> PatternThresholds:
    default: PatternThresholds = Field(
        default_factory=lambda: PatternThresholds(nudge=nudge, then=then), description=words
    )
    return default


class StuckThresholds(Data):
    """When a phase counts as stuck, a pattern a line."""

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


class CallRecord(Data):
    """One tool call that was carried out or refused."""

    tool: str
    arguments: str = ""
    result: str = ""
    error: str = ""
    """Of the error without its numbers and names; empty when there was none."""
    news: bool = False
    """Whether it brought a new result or changed a file."""


class Course(Data):
    """The window, emptied when a phase begins but for refusals of `job_complete`.

    Values are replaced, never changed in place.
    """

    recent_calls: list[CallRecord] = Field(default_factory=list)
    """The newest calls since the last completed todo, oldest first."""
    seen_results: list[str] = Field(default_factory=list)
    """Results of the phase, those seen last at the end."""
    polled_results: dict[str, str] = Field(default_factory=dict)
    """For calls of polling tools, the last result."""
    after_wait: bool = False
    """Whether the call before was `wait`."""
    text_only_replies: int = 0
    """Replies in a row without a tool call."""
    todo_refusal: str = ""
    """Why `todo_complete` was refused last, and how often in a row for that."""
    todo_refusals: int = 0
    completion_refusals: int = 0
    """Refusals of `job_complete`, over phases, since one of its deliverables last changed."""
    deliverables: str = ""
    """Fingerprint of the deliverables at the last of them."""
    calls_without_news: int = 0
    """Calls without a new result, a changed file or a completed todo."""
    replies_since_todo: int = 0
    """Model calls since the last completed todo."""
    unread_nudges: list[str] = Field(default_factory=list)
    """Patterns with advice since the last reply, which the model has not read yet."""
    narrowed_issue: str = ""
    """The pattern because of which only todo_rewind and todo_complete are accepted."""
    narrowed_step: int = 0
    """The step at which that was decided; the next one is the turn it holds for."""

    @property
    def in_new_phase(self) -> Course:
        """What a new phase begins with."""
        return Course(completion_refusals=self.completion_refusals, deliverables=self.deliverables)
