"""The window of a phase's replies and tool calls that stuck detection remembers.

It holds fingerprints only, since content never enters Temporal's history. The model's prose has no
fingerprint, because varied prose hides a loop.
"""

from pydantic import Field

from protocol.data_model import Data


class CallRecord(Data):
    """One tool call that was carried out or refused."""

    tool: str
    arguments: str = ""
    result: str = ""
    error: str = ""
    news: bool = False
    """Whether it brought a new result or changed a file."""


class Course(Data):
    """The window of stuck detection, in which values are replaced and never changed in place."""

    recent_calls: list[CallRecord] = Field(default_factory=list)
    """The newest calls since the last completed todo, oldest first."""
    seen_results: list[str] = Field(default_factory=list)
    """Fingerprints of the phase's results, the most recent last."""
    earlier_results: list[str] = Field(default_factory=list)
    """Fingerprints of what all phases read of sources, or did outside, the most recent last."""
    has_new_source: bool = False
    """Whether the phase added to these."""
    polled_results: dict[str, str] = Field(default_factory=dict)
    """Last result of each call of a polling tool."""
    after_wait: bool = False
    text_only_replies: int = 0
    """Consecutive replies without a tool call."""
    todo_refusal: str = ""
    """Reason of the last refusal of `todo_complete`; `todo_refusals` counts its repetitions."""
    todo_refusals: int = 0
    completion_refusals: int = 0
    """Refusals of `job_complete`, across phases, since a deliverable last changed."""
    deliverables: str = ""
    """Fingerprint of the deliverables at the last such refusal."""
    open_items: int = 0
    """Items and steps that were open then."""
    phase_marks: list[str] = Field(default_factory=list)
    """Fingerprints of list, scope and plan, and of the work, at the ends of phases, the newest
    last."""
    idle_phases: int = 0
    """Phases of work in a row of which nothing came, or that left the mark of an earlier one."""
    calls_without_news: int = 0
    """Calls without a new result, a changed file or a completed todo."""
    replies_since_todo: int = 0
    unread_nudges: list[str] = Field(default_factory=list)
    """Patterns advised on since the last reply; the model has not read the advice yet."""
    narrowed_issue: str = ""
    """The pattern that narrowed the phase to a few tools."""
    narrowed_to: list[str] = Field(default_factory=lambda: ["todo_rewind", "todo_complete"])
    """These tools, once it is narrowed."""
    narrowed_step: int = 0
    """The step that narrowed the phase; the narrowing applies to the next step."""

    @property
    def in_new_phase(self) -> "Course":
        return Course(
            completion_refusals=self.completion_refusals,
            deliverables=self.deliverables,
            open_items=self.open_items,
            earlier_results=self.earlier_results,
            phase_marks=self.phase_marks,
            idle_phases=self.idle_phases,
        )
