"""Stuck detection: is the job going in circles? A pure function of its course.

Each row of `ROWS` counts one pattern. When an event raises a row's count to the row's `nudge`, or
to a multiple of it, the model gets advice. At its `then` the phase accepts only a rewind or a
completed todo, or the job waits for a person. That happens in a later reply than the nudge: when
the last call of a long reply runs, the model has not read the first result yet.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from protocol.course_window import CallRecord, Course
from protocol.phase import Phase
from protocol.stuck_thresholds import PatternThresholds, StuckThresholds
from protocol.waiting import WaitState
from workflows.rules.course import LONGEST_CYCLE

NOTHING_NEW = "nothing_new"
FAILURES = ("same_call_error", "same_error")
"""Patterns of calls that fail."""
Then = Literal["rewind", "stuck", "review"]


@dataclass(frozen=True)
class Nudge:
    """The model gets advice once, in its next turn."""

    word: ClassVar = "the model was told"
    pattern: str
    issue: str
    advice: str


@dataclass(frozen=True)
class Narrow:
    """In the next turn only `todo_rewind` and what may end the todo are accepted."""

    word: ClassVar = "only calls that end the todo are accepted next"
    pattern: str
    issue: str
    advice: str
    text: str
    accepted: tuple[str, ...]


@dataclass(frozen=True)
class Wait:
    """The job waits for a person."""

    word: ClassVar = "a person is asked"
    pattern: str
    issue: str
    advice: str
    waiting: WaitState


Verdict = Nudge | Narrow | Wait


@dataclass(frozen=True)
class PatternRow:
    """A pattern: how it is counted and described, and its consequence."""

    name: str
    count: Callable[[Course], int]
    words: Callable[[Course, int], str]
    advice: str
    then: Then = "rewind"


def judge_stuckness(
    before: Course, after: Course, figures: StuckThresholds, phase: Phase
) -> Sequence[Verdict]:
    """Return the verdicts on the newest event: the most serious one alone, or all advice for the
    model.

    Args:
        before: The course before the event.
        after: The course after the event.
        figures: The agent's thresholds.
        phase: The running phase, for the advice to the model.
    """
    if after.narrowed_issue:
        return []
    verdicts = [
        verdict
        for row in ROWS
        if (verdict := _judge_stuck_pattern(row, before, after, figures, phase))
    ]
    grave = [verdict for verdict in verdicts if not isinstance(verdict, Nudge)]
    waits = [verdict for verdict in grave if isinstance(verdict, Wait)]
    return [*waits, *grave][:1] or verdicts


def stuck_advice_text(verdicts: Sequence[Verdict]) -> str:
    """Return the advice to the model: all issues, then each recommendation once."""
    if isinstance(verdicts[0], Narrow):
        return verdicts[0].text
    advice = dict.fromkeys(verdict.advice for verdict in verdicts)
    return " ".join([*(verdict.issue for verdict in verdicts), *advice])


def mark_stuck_advice_sent(course: Course, verdicts: Sequence[Verdict]) -> Course:
    """Return the course after the model was advised on these patterns."""
    patterns = [verdict.pattern for verdict in verdicts]
    return course.model_copy(update={"unread_nudges": [*course.unread_nudges, *patterns]})


def is_stuck_advice_outdated(course: Course) -> bool:
    """Whether a later call of the same reply did what the unread advice asks for."""
    return course.unread_nudges == [NOTHING_NEW] and not course.calls_without_news


def narrow_stuck_course(course: Course, verdict: Narrow, step: int) -> Course:
    """Return the course in which the next turn is the last before a rewind."""
    return course.model_copy(
        update={
            "narrowed_issue": verdict.issue,
            "narrowed_step": step,
            "narrowed_to": list(verdict.accepted),
        }
    )


def stuck_phase_refusal(course: Course, tool: str, todo: int) -> str | None:
    """Return why a narrowed phase does not accept the call, or None."""
    if not course.narrowed_issue or tool in course.narrowed_to:
        return None
    advice = _last_turn_advice(course.narrowed_issue, todo, course.narrowed_to)
    return f"{tool[:60]} is not accepted now. {advice}"


def accepted_before_rewind(phase: Phase, pattern: str) -> tuple[str, ...]:
    """Return the tools of the one turn before a forced rewind, what ends the todo first."""
    if phase.kind == "tactical":
        return ("job_complete" if phase.is_ending else "todo_complete", "todo_rewind")
    if phase.is_ending:
        return ("job_complete", "todo_write", "todo_rewind")
    if pattern == "idle_phases":
        # A list handed over now would be one more of these.
        return ("todo_complete", "job_complete", "todo_rewind")
    if phase.open_count == 1:
        return ("todo_write", "job_complete", "todo_complete", "todo_rewind")
    return ("todo_complete", "todo_write", "job_complete", "todo_rewind")


def overdue_stuck_rewind(course: Course, step: int) -> str | None:
    """Return the issue of the rewind that is due before the next model call, or None."""
    return course.narrowed_issue if course.narrowed_issue and step > course.narrowed_step else None


def _judge_stuck_pattern(
    row: PatternRow, before: Course, after: Course, figures: StuckThresholds, phase: Phase
) -> Verdict | None:
    todo = phase.current.id if phase.current else 0
    allowed: PatternThresholds = getattr(figures, row.name)
    count = row.count(after)
    if count < allowed.nudge or count <= row.count(before) or row.name in after.unread_nudges:
        return None
    issue, advice = row.words(after, count), row.advice.format(todo=todo)
    if count < allowed.then:
        return Nudge(row.name, issue, advice) if count % allowed.nudge == 0 else None
    if row.then == "rewind" and (allowed.wait is None or count < allowed.wait):
        accepted = accepted_before_rewind(phase, row.name)
        text = _last_turn_advice(issue, todo, accepted)
        return Narrow(row.name, issue, advice, text, accepted)
    reason: Literal["stuck", "review"] = "review" if row.then == "review" else "stuck"
    waiting = WaitState(reason=reason, message=issue, remedy=_REMEDIES[reason])
    return Wait(row.name, issue, advice, waiting)


def _last_turn_advice(issue: str, todo: int, accepted: Sequence[str]) -> str:
    return (
        f"{issue} In this reply only {', '.join(accepted[:-1])} and {accepted[-1]} are accepted: "
        f"call {accepted[0]} if todo {todo} is done, else todo_rewind with what stands in the way. "
        "Otherwise the system goes back by itself."
    )


_REMEDIES: dict[Literal["stuck", "review"], str] = {
    "stuck": "Resume lets it go on and counts afresh; rewind with an issue that says what to do "
    "otherwise; or cancel.",
    "review": "Look at the deliverables and at why completion was refused. Resume lets it try "
    "again; rewind with an issue that says what is missing; or cancel.",
}


def _run_of_same_calls(
    calls: list[CallRecord], same: Callable[[CallRecord, CallRecord], bool]
) -> int:
    """Return how many calls at the end are the same as the last one."""
    return _stuck_run_length(same(call, calls[-1]) for call in reversed(calls))


def _stuck_run_length(values: Iterable[bool]) -> int:
    """Return how many values are true before the first false one."""
    count = 0
    for value in values:
        if not value:
            break
        count += 1
    return count


def _same_call(call: CallRecord, other: CallRecord) -> bool:
    return (call.tool, call.arguments) == (other.tool, other.arguments)


def _same_result(course: Course) -> int:
    return _run_of_same_calls(
        course.recent_calls,
        lambda call, last: _same_call(call, last) and not call.error and call.result == last.result,
    )


def _same_call_error(course: Course) -> int:
    return _run_of_same_calls(
        course.recent_calls, lambda call, last: _same_call(call, last) and bool(call.error)
    )


def _same_error(course: Course) -> int:
    """Count calls with the last one's error; calls in between without news do not end the run."""
    if not course.recent_calls or not course.recent_calls[-1].error:
        return 0
    error, failures = course.recent_calls[-1].error, []
    for call in reversed(course.recent_calls):
        if call.error == error:
            failures.append(call)
        elif call.news or call.error:
            break
    return len(failures) if any(not _same_call(deed, failures[0]) for deed in failures) else 0


def _find_stuck_cycle(course: Course) -> tuple[int, int]:
    """Return the complete rounds of the cycle at the end, and the calls per round."""
    marks = [(call.tool, call.arguments, call.result) for call in reversed(course.recent_calls)]
    cycles = [
        (_count_stuck_rounds(marks, length), length) for length in range(2, LONGEST_CYCLE + 1)
    ]
    return max(cycles, key=lambda cycle: (cycle[0], -cycle[1]))


def _count_stuck_rounds(marks: list[tuple[str, str, str]], length: int) -> int:
    """Count rounds of that length, newest first; repetitions of a single call are no cycle."""
    if len(set(marks[:length])) < 2:
        return 0
    pairs = zip(marks, marks[length:], strict=False)
    equal = _stuck_run_length(mark == earlier for mark, earlier in pairs)
    rounds, part = divmod(length + equal, length)
    return 0 if part else rounds


def _cycle_tools(course: Course) -> str:
    return ", ".join(call.tool for call in course.recent_calls[-_find_stuck_cycle(course)[1] :])


def _stuck_tool(course: Course) -> str:
    return course.recent_calls[-1].tool


OTHERWISE = (
    "Doing it once more changes nothing: complete todo {todo} if it is done, do it another way, or "
    "call todo_rewind with what stands in the way."
)
ROWS: tuple[PatternRow, ...] = (
    PatternRow(
        "same_result",
        _same_result,
        lambda course, n: (
            f"{_stuck_tool(course)} was called {n} times in a row with the same arguments "
            "and the same result."
        ),
        OTHERWISE,
    ),
    PatternRow(
        "same_call_error",
        _same_call_error,
        lambda course, n: (
            f"{_stuck_tool(course)} was called {n} times in a row with the same arguments "
            "and failed each time."
        ),
        OTHERWISE,
    ),
    PatternRow(
        "same_error",
        _same_error,
        lambda course, n: (
            f"{n} calls, the last of {_stuck_tool(course)}, failed with the same error "
            "whatever their arguments."
        ),
        OTHERWISE,
    ),
    PatternRow(
        "cycle",
        lambda course: _find_stuck_cycle(course)[0],
        lambda course, n: (
            f"The same calls went round {n} times with equal results: {_cycle_tools(course)}."
        ),
        OTHERWISE,
    ),
    PatternRow(
        "no_action",
        lambda course: course.text_only_replies,
        lambda _, n: f"{n} replies in a row called no tool.",
        "Do todo {todo} with a tool, or call todo_complete when it is done.",
    ),
    PatternRow(
        "refused_todo",
        lambda course: course.todo_refusals,
        lambda _, n: f"todo_complete was refused {n} times for the same reason.",
        "Do first what the refusal asks for. If that cannot be done, call todo_rewind with what "
        "stands in the way.",
    ),
    PatternRow(
        "refused_completion",
        lambda course: course.completion_refusals,
        lambda _, n: f"job_complete was refused {n} times, its deliverables unchanged.",
        "Do first what the refusal asks for; refused again, the job waits for a person.",
        "review",
    ),
    PatternRow(
        NOTHING_NEW,
        lambda course: course.calls_without_news,
        lambda _, n: f"{n} calls brought no new result, changed no file and completed no todo.",
        "Use what you have: do todo {todo}, or call todo_rewind with what stands in the way.",
        "stuck",
    ),
    PatternRow(
        "no_todo",
        lambda course: course.replies_since_todo,
        lambda _, n: f"{n} model calls completed no todo.",
        "Bring todo {todo} to an end and call todo_complete, or call todo_rewind with what stands "
        "in the way.",
        "stuck",
    ),
    PatternRow(
        "idle_phases",
        lambda course: course.idle_phases,
        lambda _, n: (
            f"{n} phases of work in a row changed no file and completed no item, or repeated an "
            "earlier phase."
        ),
        "Plan the rest otherwise: hand over todos that each make or change a file, or end the job.",
    ),
)
