"""Stuck detection: is the phase going in circles? A pure function of its course.

Each row of `ROWS` counts one pattern. When an event raises a row's count to the row's `nudge`, or
to a multiple of it, the model is told; at its `then` the phase is narrowed to going back, or the
job waits for a person. That comes in a later reply than the nudge: of a reply with many calls the
model has not read the first result when the last is carried out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from protocol.course import Course, Deed, Figures, StuckFigures
from protocol.record import Waiting
from workflows.course import LONGEST_CYCLE

ACCEPTED = ("todo_rewind", "todo_complete")
"""The tools of the one turn before a forced rewind."""
Then = Literal["rewind", "stuck", "review"]


@dataclass(frozen=True)
class Nudge:
    """The model is told, once, with its next turn."""

    word: ClassVar = "the model was told"
    pattern: str
    issue: str
    advice: str


@dataclass(frozen=True)
class Narrow:
    """One turn in which only going back, or completing the todo, is accepted."""

    word: ClassVar = "only todo_rewind and todo_complete are accepted next"
    pattern: str
    issue: str
    advice: str
    text: str


@dataclass(frozen=True)
class Wait:
    """A person is asked."""

    word: ClassVar = "a person is asked"
    pattern: str
    issue: str
    advice: str
    waiting: Waiting


Verdict = Nudge | Narrow | Wait


@dataclass(frozen=True)
class Row:
    """One pattern: how its count is taken, what it is called, where it leads."""

    name: str
    count: Callable[[Course], int]
    words: Callable[[Course, int], str]
    advice: str
    then: Then = "rewind"


def judge(before: Course, after: Course, figures: StuckFigures, todo: int) -> Sequence[Verdict]:
    """What follows from the newest event: the gravest alone, or all that the model is to be told.

    Args:
        before: The course before the event.
        after: The same after it.
        figures: The agent's.
        todo: Number of the current todo, for what the model is told.
    """
    if after.narrowed:
        return []
    found = [verdict for row in ROWS if (verdict := _judge(row, before, after, figures, todo))]
    grave = [verdict for verdict in found if not isinstance(verdict, Nudge)]
    waits = [verdict for verdict in grave if isinstance(verdict, Wait)]
    return [*waits, *grave][:1] or found


def text(verdicts: Sequence[Verdict]) -> str:
    """What the model is told: every issue, then what to do, each advice once."""
    if isinstance(verdicts[0], Narrow):
        return verdicts[0].text
    advice = dict.fromkeys(verdict.advice for verdict in verdicts)
    return " ".join([*(verdict.issue for verdict in verdicts), *advice])


def mark_advised(course: Course, verdicts: Sequence[Verdict]) -> Course:
    """The course once the model is to be told."""
    patterns = [verdict.pattern for verdict in verdicts]
    return course.model_copy(update={"unread": [*course.unread, *patterns]})


def narrow(course: Course, verdict: Narrow, step: int) -> Course:
    """The course once the next turn is the last before a rewind."""
    return course.model_copy(update={"narrowed": verdict.issue, "narrowed_at": step})


def not_now(course: Course, tool: str, todo: int) -> str | None:
    """Why a call is not accepted in a narrowed phase, or None."""
    if not course.narrowed or tool in ACCEPTED:
        return None
    return f"{tool[:60]} is not accepted now. {_last_turn(course.narrowed, todo)}"


def overdue(course: Course, step: int) -> str | None:
    """The issue of the rewind that must be forced before the next model call, or None."""
    return course.narrowed if course.narrowed and step > course.narrowed_at else None


def _judge(
    row: Row, before: Course, after: Course, figures: StuckFigures, todo: int
) -> Verdict | None:
    allowed: Figures = getattr(figures, row.name)
    count = row.count(after)
    if count < allowed.nudge or count <= row.count(before) or row.name in after.unread:
        return None
    issue, advice = row.words(after, count), row.advice.format(todo=todo)
    if count < allowed.then:
        return Nudge(row.name, issue, advice) if count % allowed.nudge == 0 else None
    if row.then == "rewind":
        return Narrow(row.name, issue, advice, _last_turn(issue, todo))
    waiting = Waiting(reason=row.then, message=issue, remedy=_REMEDIES[row.then])
    return Wait(row.name, issue, advice, waiting)


def _last_turn(issue: str, todo: int) -> str:
    return (
        f"{issue} In this reply only todo_rewind and todo_complete are accepted: call "
        f"todo_complete if todo {todo} is done, else todo_rewind with what stands in the way. "
        "Otherwise the system goes back by itself."
    )


_REMEDIES: dict[Then, str] = {
    "stuck": "Resume lets it go on and counts afresh; rewind with an issue that says what to do "
    "otherwise; or cancel.",
    "review": "Look at the deliverables and at why completion was refused. Resume lets it try "
    "again; rewind with an issue that says what is missing; or cancel.",
}


def _run(deeds: list[Deed], same: Callable[[Deed, Deed], bool]) -> int:
    """How many calls at the end are the same as the last."""
    return _leading(same(deed, deeds[-1]) for deed in reversed(deeds))


def _leading(values: Iterable[bool]) -> int:
    """How many hold before the first that does not."""
    count = 0
    for value in values:
        if not value:
            break
        count += 1
    return count


def _same_call(one: Deed, other: Deed) -> bool:
    return (one.tool, one.arguments) == (other.tool, other.arguments)


def _same_result(course: Course) -> int:
    return _run(
        course.deeds,
        lambda one, last: _same_call(one, last) and not one.error and one.result == last.result,
    )


def _same_call_error(course: Course) -> int:
    return _run(course.deeds, lambda one, last: _same_call(one, last) and bool(one.error))


def _same_error(course: Course) -> int:
    """Calls with the error of the last; those between that brought nothing end no run."""
    if not course.deeds or not course.deeds[-1].error:
        return 0
    error, found = course.deeds[-1].error, []
    for deed in reversed(course.deeds):
        if deed.error == error:
            found.append(deed)
        elif deed.news or deed.error:
            break
    return len(found) if any(not _same_call(deed, found[0]) for deed in found) else 0


def _cycle(course: Course) -> tuple[int, int]:
    """Rounds of the cycle at the end, counted when one is complete, and the calls of a round."""
    marks = [(deed.tool, deed.arguments, deed.result) for deed in reversed(course.deeds)]
    found = [(_rounds(marks, length), length) for length in range(2, LONGEST_CYCLE + 1)]
    return max(found, key=lambda one: (one[0], -one[1]))


def _rounds(marks: list[tuple[str, str, str]], length: int) -> int:
    """Rounds of that many calls, newest first; the same call over and over is no cycle."""
    if len(set(marks[:length])) < 2:
        return 0
    pairs = zip(marks, marks[length:], strict=False)
    equal = _leading(one == earlier for one, earlier in pairs)
    rounds, part = divmod(length + equal, length)
    return 0 if part else rounds


def _names(course: Course) -> str:
    return ", ".join(deed.tool for deed in course.deeds[-_cycle(course)[1] :])


def _tool(course: Course) -> str:
    return course.deeds[-1].tool


OTHERWISE = (
    "Doing it once more changes nothing: complete todo {todo} if it is done, do it another way, or "
    "call todo_rewind with what stands in the way."
)
ROWS: tuple[Row, ...] = (
    Row(
        "same_result",
        _same_result,
        lambda course, n: (
            f"{_tool(course)} was called {n} times in a row with the same arguments "
            "and the same result."
        ),
        OTHERWISE,
    ),
    Row(
        "same_call_error",
        _same_call_error,
        lambda course, n: (
            f"{_tool(course)} was called {n} times in a row with the same arguments "
            "and failed each time."
        ),
        OTHERWISE,
    ),
    Row(
        "same_error",
        _same_error,
        lambda course, n: (
            f"{n} calls, the last of {_tool(course)}, failed with the same error "
            "whatever their arguments."
        ),
        OTHERWISE,
    ),
    Row(
        "cycle",
        lambda course: _cycle(course)[0],
        lambda course, n: (
            f"The same calls went round {n} times with equal results: {_names(course)}."
        ),
        OTHERWISE,
    ),
    Row(
        "no_action",
        lambda course: course.silent,
        lambda _, n: f"{n} replies in a row called no tool.",
        "Do todo {todo} with a tool, or call todo_complete when it is done.",
    ),
    Row(
        "refused_todo",
        lambda course: course.refusals,
        lambda _, n: f"todo_complete was refused {n} times for the same reason.",
        "Do first what the refusal asks for. If that cannot be done, call todo_rewind with what "
        "stands in the way.",
    ),
    Row(
        "refused_completion",
        lambda course: course.completions,
        lambda _, n: f"job_complete was refused {n} times, its deliverables unchanged.",
        "Do first what the refusal asks for; refused again, the job waits for a person.",
        "review",
    ),
    Row(
        "nothing_new",
        lambda course: course.stale,
        lambda _, n: f"{n} calls brought no new result, changed no file and completed no todo.",
        "Use what you have: do todo {todo}, or call todo_rewind with what stands in the way.",
        "stuck",
    ),
    Row(
        "no_todo",
        lambda course: course.replies,
        lambda _, n: f"{n} model calls completed no todo.",
        "Bring todo {todo} to an end and call todo_complete, or call todo_rewind with what stands "
        "in the way.",
        "stuck",
    ),
)
