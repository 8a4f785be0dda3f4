"""The events of a phase without a job, and a watch that records the responses to them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from protocol.course_window import Course
from protocol.phase import Phase
from protocol.requests import Call, ToolReply
from protocol.stuck_thresholds import StuckThresholds
from protocol.todo_list import Todo
from workflows.rules.course import (
    CallOutcome,
    course_after_call,
    course_after_phase,
    course_after_reply,
)
from workflows.rules.stuck import Nudge, Verdict, judge_stuckness, mark_stuck_advice_sent

Event = CallOutcome | str | None
"""A tool call, the mark that a phase of work leaves (`idle…` if it changed nothing), or None for a
reply without a call."""


def did(
    tool: str, arguments: object = "", result: object = "", error: object = "", **more: bool
) -> CallOutcome:
    changed = more.pop("changed", False)
    reply = ToolReply(
        commit="c",
        ok=not error,
        fingerprint=str(result or error),
        error_fingerprint=str(error),
        changed=changed,
    )
    return CallOutcome(Call(tool=tool, fingerprint=str(arguments)), reply, **more)


def news(n: object) -> CallOutcome:
    """Return a call that brings something new."""
    return did("read_file", f"page {n}", f"text {n}")


def completed(n: object) -> CallOutcome:
    return did("todo_complete", "", f"completed {n}", completed=True)


def refused(tool: str, reason: Callable[[int], str]) -> Callable[[int], Sequence[Event]]:
    """Return a function that gives n refusals with honest work between them."""
    return lambda n: [event for k in range(n) for event in (news(k), did(tool, k, error=reason(k)))]


@dataclass
class Watch:
    """Watches a phase; each tool call is a separate reply."""

    figures: StuckThresholds = field(default_factory=StuckThresholds)
    course: Course = field(default_factory=Course)
    phase: Phase = field(
        default_factory=lambda: Phase(
            number=2, kind="tactical", purpose="work", name="Look", todos=[Todo(id=3, content="x")]
        )
    )

    def play(self, events: Iterable[Event]) -> list[Verdict]:
        """Return the verdicts on these events, in order."""
        return [verdict for event in events for verdict in self._one(event)]

    def play_in_one_reply(self, events: Sequence[CallOutcome]) -> list[Verdict]:
        """Return the verdicts on these calls of one reply, in order."""
        advice = [*self._move(course_after_reply(self.course, [event.call for event in events]))]
        for event in events:
            advice += self._move(course_after_call(self.course, event, self.figures))
        return advice

    def _one(self, event: Event) -> Iterator[Verdict]:
        if isinstance(event, str):
            ended = course_after_phase(self.course, event, idle=event.startswith("idle"))
            self.course = self.course.in_new_phase
            yield from self._move(ended.in_new_phase)
            return
        yield from self._move(course_after_reply(self.course, [event.call] if event else []))
        if event:
            yield from self._move(course_after_call(self.course, event, self.figures))

    def _move(self, course: Course) -> Iterator[Verdict]:
        before, self.course = self.course, course
        advice = judge_stuckness(before, course, self.figures, self.phase)
        if advice and isinstance(advice[0], Nudge):
            self.course = mark_stuck_advice_sent(course, advice)
        yield from advice
