"""A phase's course: what of its replies and tool calls stuck detection remembers.

Only fingerprints, since content never enters Temporal's history, and of no text that the model
said: varied prose hides a loop.
"""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from protocol.state import Data


class Figures(Data):
    """How often a pattern may come before the model is told, and before it goes no further."""

    nudge: int = Field(ge=2, description="The model is told, and again at each multiple.")
    then: int = Field(ge=3, description="The phase goes back, or the job waits for a person.")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.nudge >= self.then:
            raise ValueError(f"nudge {self.nudge} is not under then {self.then}")
        return self


def _figures(nudge: int, then: int, words: str) -> Figures:
    default: Figures = Field(
        default_factory=lambda: Figures(nudge=nudge, then=then), description=words
    )
    return default


class StuckFigures(Data):
    """When a phase counts as stuck, a pattern a line."""

    same_result: Figures = _figures(
        3, 5, "Calls in a row with the same arguments and the same result; then a rewind."
    )
    same_call_error: Figures = _figures(
        3, 4, "Calls in a row with the same arguments, an error each time; then a rewind."
    )
    same_error: Figures = _figures(
        5, 8, "Calls with varied arguments and the same error; then a rewind."
    )
    cycle: Figures = _figures(
        3, 4, "Rounds of the same 2 to 5 calls with equal results; then a rewind."
    )
    no_action: Figures = _figures(2, 5, "Replies in a row without a tool call; then a rewind.")
    refused_todo: Figures = _figures(
        2, 4, "Refusals of todo_complete for the same reason; then a rewind."
    )
    refused_completion: Figures = _figures(
        2,
        3,
        "Refusals of job_complete, over phases, while its deliverables stay the same; then the job "
        "waits for review.",
    )
    nothing_new: Figures = _figures(
        15,
        40,
        "Calls without a new result, a changed file or a completed todo; then the job waits.",
    )
    no_todo: Figures = _figures(
        60, 150, "Model calls without a completed todo; then the job waits."
    )


class Deed(Data):
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

    deeds: list[Deed] = Field(default_factory=list)
    """The newest calls since the last completed todo, oldest first."""
    seen: list[str] = Field(default_factory=list)
    """Results of the phase, those seen last at the end."""
    polled: dict[str, str] = Field(default_factory=dict)
    """For calls of polling tools, the last result."""
    waited: bool = False
    """Whether the call before was `wait`."""
    silent: int = 0
    """Replies in a row without a tool call."""
    refusal: str = ""
    """Why `todo_complete` was refused last, and how often in a row for that."""
    refusals: int = 0
    completions: int = 0
    """Refusals of `job_complete`, over phases, since one of its deliverables last changed."""
    deliverables: str = ""
    """Fingerprint of the deliverables at the last of them."""
    stale: int = 0
    """Calls without a new result, a changed file or a completed todo."""
    replies: int = 0
    """Model calls since the last completed todo."""
    unread: list[str] = Field(default_factory=list)
    """Patterns that the model was told of since its last reply: it has not read that yet."""
    narrowed: str = ""
    """The pattern because of which only todo_rewind and todo_complete are accepted."""
    narrowed_at: int = 0
    """The step at which that was decided; the next one is the turn it holds for."""

    @property
    def in_new_phase(self) -> Course:
        """What a new phase begins with."""
        return Course(completions=self.completions, deliverables=self.deliverables)
