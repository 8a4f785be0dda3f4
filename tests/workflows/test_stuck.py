"""Each pattern is detected at its thresholds, row by row, and what follows from it."""

from collections.abc import Callable, Sequence

import pytest

from protocol.course_window import Course
from protocol.phase import Phase, PhaseKind, Purpose
from protocol.requests import Call
from protocol.stuck_thresholds import PatternThresholds, StuckThresholds
from protocol.todo_list import Todo
from tests.workflows.courses import Event, Watch, completed, did, news, refused
from tests.workflows.records import record
from workflows.rules.course import CallOutcome, course_after_phase
from workflows.rules.stuck import (
    ROWS,
    Narrow,
    Nudge,
    Verdict,
    Wait,
    accepted_before_rewind,
    narrow_stuck_course,
    overdue_stuck_rewind,
    stuck_advice_text,
    stuck_phase_refusal,
)

FIGURES = StuckThresholds()
NEVER = {"nudge": 10**6, "then": 10**6 + 1}


def apart(row: str, **figures: dict[str, int]) -> StuckThresholds:
    """Return the thresholds, with the row for long stretches off unless it is the one tested."""
    silent = {} if row == "nothing_new" else {"nothing_new": NEVER}
    return StuckThresholds.model_validate(silent | figures)


def cycle_of(length: int) -> Callable[[int], Sequence[Event]]:
    return lambda n: [did(f"tool{part}", part, part) for part in range(length)] * n


PATTERNS: dict[str, tuple[str, Callable[[int], Sequence[Event]], type | str]] = {
    "same call": ("same_result", lambda n: [did("list_files", "a", "r")] * n, Narrow),
    "same failing call": (
        "same_call_error",
        lambda n: [did("edit_file", "a", error=f"e{k}") for k in range(n)],
        Narrow,
    ),
    "same error": (
        "same_error",
        lambda n: [did("edit_file", k, error="e") for k in range(n)],
        Narrow,
    ),
    "same error, looking again between": (
        "same_error",
        lambda n: [
            news(1),
            *(e for k in range(n) for e in (did("edit_file", k, error="e"), news(1))),
        ][:-1],
        Narrow,
    ),
    "cycle of 2": ("cycle", cycle_of(2), Narrow),
    "cycle of 3": ("cycle", cycle_of(3), Narrow),
    "cycle of 4": ("cycle", cycle_of(4), Narrow),
    "cycle of 5, in which one call fails": (
        "cycle",
        lambda n: [*cycle_of(4)(1), did("x", error="e")] * n,
        Narrow,
    ),
    "text alone": ("no_action", lambda n: [None] * n, Narrow),
    "todo refused": ("refused_todo", refused("todo_complete", lambda k: "list too short"), Narrow),
    "completion refused": (
        "refused_completion",
        refused("job_complete", lambda k: f"reason {k}"),
        "review",
    ),
    "nothing new": (
        "nothing_new",
        lambda n: [
            *(did("search_files", f"first {k}", f"text {k}") for k in range(3)),
            *(did("search_files", k, f"text {k % 3}") for k in range(n)),
        ],
        "stuck",
    ),
    "denied all the time": (
        "nothing_new",
        lambda n: [did(f"tool{k}", k, error=f"e{k}", denied=True) for k in range(n)],
        "stuck",
    ),
    "idle phases": ("idle_phases", lambda n: [f"idle {k}" for k in range(n)], Narrow),
    "phases that come again": (
        "idle_phases",
        lambda n: ["one", "two", *(("one", "two")[k % 2] for k in range(n))],
        Narrow,
    ),
    "no todo completed": ("no_todo", lambda n: list(map(news, range(n))), "stuck"),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_noticed_at_its_figures(pattern: str) -> None:
    row, events, then = PATTERNS[pattern]
    allowed: PatternThresholds = getattr(FIGURES, row)

    def play(times: int) -> list[Verdict]:
        return Watch(apart(row)).play(events(times))

    assert play(allowed.nudge - 1) == []
    (nudge,) = play(allowed.nudge)
    assert isinstance(nudge, Nudge)
    assert str(allowed.nudge) in nudge.issue
    assert stuck_advice_text([nudge]) == f"{nudge.issue} {nudge.advice}"
    assert all(isinstance(advice, Nudge) for advice in play(allowed.then - 1))
    *nudges, last = play(allowed.then)
    assert len(nudges) == (allowed.then - 1) // allowed.nudge
    if isinstance(then, str):
        assert isinstance(last, Wait)
        assert last.waiting.reason == then
        assert "resume" in last.waiting.remedy.lower()
    else:
        assert isinstance(last, then)
    assert str(allowed.then) in last.issue


def test_what_the_model_has_not_read_yet_does_not_narrow_it() -> None:
    failing = [did("list_files", k, error="e") for k in range(20)]
    watch = Watch(apart("same_error"))
    assert [type(advice) for advice in watch.play_in_one_reply(failing)] == [Nudge]
    assert [type(advice) for advice in watch.play_in_one_reply(failing[:1])] == [Narrow]
    mended = Watch(apart("same_error"))
    mended.play_in_one_reply(failing)
    assert mended.play_in_one_reply([news(1), news(2)]) == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_is_its_own_row_that_notices(pattern: str) -> None:
    row, events, _ = PATTERNS[pattern]
    allowed: PatternThresholds = getattr(FIGURES, row)
    assert Watch(apart(row, **{row: NEVER})).play(events(allowed.then)) == []


def test_every_row_of_the_figures_is_watched() -> None:
    assert {row.name for row in ROWS} == set(StuckThresholds.model_fields)
    assert {row for row, _, _ in PATTERNS.values()} == set(StuckThresholds.model_fields)


@pytest.mark.parametrize("row", StuckThresholds.model_fields)
def test_an_agent_may_set_its_own_figures(row: str) -> None:
    figures = StuckThresholds.model_validate({row: {"nudge": 2, "then": 3}})
    events = next(events for name, events, _ in PATTERNS.values() if name == row)
    *nudges, last = Watch(figures).play(events(3))
    assert not isinstance(last, Nudge)
    assert len(nudges) == 1


def test_figures_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="nudge 5 is not under then 5"):
        PatternThresholds(nudge=5, then=5)


def test_what_the_model_says_between_hides_no_loop() -> None:
    events = [event for _ in range(3) for event in (did("list_files", "a", "r"), None)]
    assert any("3 times in a row" in advice.issue for advice in Watch().play(events))


def test_the_model_is_told_of_all_that_one_call_completes() -> None:
    figures = StuckThresholds.model_validate({"nothing_new": {"nudge": 2, "then": 40}})
    watch = Watch(figures)
    same, stale = watch.play([did("list_files", "a", "r")] * 3)
    assert (
        stuck_advice_text([same, stale])
        == f"{same.issue} {stale.issue} {same.advice} {stale.advice}"
    )
    assert stuck_advice_text([same, same]).count(same.advice) == 1
    assert watch.course.unread_nudges == ["same_result", "nothing_new"]


def test_the_gravest_of_several_counts() -> None:
    figures = StuckThresholds.model_validate({"nothing_new": {"nudge": 2, "then": 4}})
    *_, last = Watch(figures).play([did("list_files", "a", "r")] * 5)
    assert isinstance(last, Wait)


def test_a_narrowed_phase_takes_only_the_two_ways_out() -> None:
    watch = Watch()
    verdict = watch.play([did("list_files", "a", "r")] * 5)[-1]
    assert isinstance(verdict, Narrow)
    course = narrow_stuck_course(watch.course, verdict, step=7)
    assert stuck_phase_refusal(Course(), "list_files", 3) is None
    assert stuck_phase_refusal(course, "todo_rewind", 3) is None
    assert stuck_phase_refusal(course, "todo_complete", 3) is None
    refusal = str(stuck_phase_refusal(course, "list_files", 3))
    assert "only todo_complete and todo_rewind are accepted" in refusal
    assert "todo 3" in refusal
    assert overdue_stuck_rewind(course, step=7) is None
    assert overdue_stuck_rewind(course, step=8) == verdict.issue
    watch.course = course
    assert watch.play([did("list_files", "a", error="no", denied=True)] * 20) == []
    assert watch.course.narrowed_issue
    watch.play([completed(1)])
    assert overdue_stuck_rewind(watch.course, step=9) is None


def test_a_phase_with_work_ends_the_run_of_idle_ones_and_a_fifth_idle_one_asks_a_person() -> None:
    assert Watch().play(["idle 1", "one", "idle 2", "two", "idle 3", "three"]) == []
    phases = range(9)
    assert Watch().play([e for k in phases for e in (news(k), completed(k), f"idle {k}")]) == []
    verdicts = Watch().play([e for k in range(6) for e in (news(1), completed(1), f"idle {k}")])
    assert [type(verdict) for verdict in verdicts] == [Nudge, Narrow, Narrow, Wait]
    assert "5 phases of work in a row" in verdicts[-1].issue
    assert isinstance(verdicts[-1], Wait)
    assert verdicts[-1].waiting.reason == "stuck"


def test_only_new_work_and_new_sources_count_over_phases() -> None:
    def idle_after(*works: str, calls: Sequence[CallOutcome] = ()) -> int:
        watch = Watch()
        for n, work in enumerate(works):
            watch.play(calls)
            watch.course = course_after_phase(watch.course, f"list {n}", idle=True, work=work)
            watch.course = watch.course.in_new_phase
        return watch.course.idle_phases

    assert idle_after("a", "b", "c") == 0
    assert idle_after("a", "b", "a", "b") == 2
    assert idle_after("", "", "") == 3
    page = CallOutcome(Call(tool="read_file", path="documents/a.md"), did("read_file", "", 1).reply)
    assert idle_after("", calls=[page]) == 0
    assert idle_after("", "", calls=[page]) == 1
    note = CallOutcome(Call(tool="read_file", path="./notes/a.md"), page.reply)
    assert idle_after("", "", calls=[note, did("list_files", "", 2)]) == 2


def test_the_last_turn_accepts_what_would_be_right() -> None:
    todos = [Todo(id=n, content="x") for n in (1, 2)]

    def accepted(kind: PhaseKind, purpose: Purpose, count: int, pattern: str = "") -> list[str]:
        phase = Phase(number=2, kind=kind, purpose=purpose, name="x", todos=todos[:count])
        return sorted(accepted_before_rewind(phase, pattern))

    assert accepted("tactical", "work", 1) == ["todo_complete", "todo_rewind"]
    assert accepted("strategic", "final", 1) == ["job_complete", "todo_rewind", "todo_write"]
    every = ["job_complete", "todo_complete", "todo_rewind", "todo_write"]
    assert accepted("strategic", "transition", 2) == every
    assert accepted("strategic", "transition", 1) == every
    assert "todo_write" not in accepted("strategic", "transition", 1, "idle_phases")


def test_a_completed_todo_ends_every_run() -> None:
    for _, events, _ in PATTERNS.values():
        watch = Watch()
        watch.play([*events(2), completed(1)])
        assert watch.course.recent_calls == []
        assert (
            watch.course.replies_since_todo,
            watch.course.calls_without_news,
            watch.course.todo_refusals,
        ) == (0, 0, 0)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_window_is_the_same_in_a_new_run(pattern: str) -> None:
    row, events, _ = PATTERNS[pattern]
    played = events(getattr(FIGURES, row).then)
    whole = Watch().play(played)
    again, advice = Watch(), []
    for event in played:
        advice += again.play([event])
        job = record(course=again.course)
        carried = type(job).model_validate(job.model_dump(mode="json", exclude_defaults=True))
        again.course = carried.course
    assert advice == whole
