"""Each pattern is noticed at its figures, by its own row, and honest work by none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.course import Course, Figures, StuckFigures
from protocol.requests import Call, ToolReply
from tests.workflows.records import record
from workflows.course import MAX_POLLED, MAX_SEEN, Happened, after_call, after_reply, window
from workflows.stuck import ROWS, Narrow, Nudge, Verdict, Wait, judge, narrow, not_now, overdue

FIGURES = StuckFigures()
Event = Happened | None
"""A tool call, or (None) a reply without one."""


def did(
    tool: str, arguments: object = "", result: object = "", error: object = "", **more: bool
) -> Happened:
    changed = more.pop("changed", False)
    reply = ToolReply(
        commit="c",
        ok=not error,
        mark=str(result or error),
        error_mark=str(error),
        changed=changed,
    )
    return Happened(Call(tool=tool, mark=str(arguments)), reply, **more)


def news(n: object) -> Happened:
    """A call that brings something new."""
    return did("read_file", f"page {n}", f"text {n}")


def completed(n: object) -> Happened:
    return did("todo_complete", "", f"completed {n}", completed=True)


@dataclass
class Watch:
    """A phase that is watched; each tool call is a reply of its own."""

    figures: StuckFigures = field(default_factory=StuckFigures)
    course: Course = field(default_factory=Course)

    def play(self, events: Iterable[Event]) -> list[Verdict]:
        """What is said to these events, in order."""
        return [verdict for event in events for verdict in self._one(event)]

    def _one(self, event: Event) -> Iterator[Verdict]:
        yield from self._move(after_reply(self.course, [event.call] if event else []))
        if event:
            yield from self._move(after_call(self.course, event, self.figures))

    def _move(self, course: Course) -> Iterator[Verdict]:
        before, self.course = self.course, course
        if verdict := judge(before, course, self.figures, 3):
            yield verdict


NEVER = {"nudge": 10**6, "then": 10**6 + 1}


def apart(row: str, **figures: dict[str, int]) -> StuckFigures:
    """The figures, with the row for long stretches silent unless it is the one looked at."""
    silent = {} if row == "nothing_new" else {"nothing_new": NEVER}
    return StuckFigures.model_validate(silent | figures)


def cycle_of(length: int) -> Callable[[int], Sequence[Event]]:
    return lambda n: [did(f"tool{part}", part, part) for part in range(length)] * n


def refused(tool: str, reason: Callable[[int], str]) -> Callable[[int], Sequence[Event]]:
    """Refused n times, with honest work between."""
    return lambda n: [event for k in range(n) for event in (news(k), did(tool, k, error=reason(k)))]


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
            *map(news, range(3)),
            *(did("search_files", k, f"text {k % 3}") for k in range(n)),
        ],
        "stuck",
    ),
    "denied all the time": (
        "nothing_new",
        lambda n: [did(f"tool{k}", k, error=f"e{k}", denied=True) for k in range(n)],
        "stuck",
    ),
    "no todo completed": ("no_todo", lambda n: list(map(news, range(n))), "stuck"),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_noticed_at_its_figures(pattern: str) -> None:
    row, events, then = PATTERNS[pattern]
    allowed: Figures = getattr(FIGURES, row)

    def play(times: int) -> list[Verdict]:
        return Watch(apart(row)).play(events(times))

    assert play(allowed.nudge - 1) == []
    (nudge,) = play(allowed.nudge)
    assert isinstance(nudge, Nudge)
    assert str(allowed.nudge) in nudge.issue
    assert nudge.text.startswith(nudge.issue)
    assert all(isinstance(told, Nudge) for told in play(allowed.then - 1))
    *nudges, last = play(allowed.then)
    assert len(nudges) == (allowed.then - 1) // allowed.nudge
    if isinstance(then, str):
        assert isinstance(last, Wait)
        assert last.waiting.reason == then
        assert "resume" in last.waiting.remedy.lower()
    else:
        assert isinstance(last, then)
    assert str(allowed.then) in last.issue


@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_is_its_own_row_that_notices(pattern: str) -> None:
    row, events, _ = PATTERNS[pattern]
    allowed: Figures = getattr(FIGURES, row)
    assert Watch(apart(row, **{row: NEVER})).play(events(allowed.then)) == []


def test_every_row_of_the_figures_is_watched() -> None:
    assert {row.name for row in ROWS} == set(StuckFigures.model_fields)
    assert {row for row, _, _ in PATTERNS.values()} == set(StuckFigures.model_fields)


@pytest.mark.parametrize("row", StuckFigures.model_fields)
def test_an_agent_may_set_its_own_figures(row: str) -> None:
    figures = StuckFigures.model_validate({row: {"nudge": 2, "then": 3}})
    events = next(events for name, events, _ in PATTERNS.values() if name == row)
    *nudges, last = Watch(figures).play(events(3))
    assert not isinstance(last, Nudge)
    assert len(nudges) == 1


def test_figures_must_be_in_order() -> None:
    with pytest.raises(ValueError, match="nudge 5 is not under then 5"):
        Figures(nudge=5, then=5)


def test_what_the_model_says_between_hides_no_loop() -> None:
    events = [event for _ in range(3) for event in (did("list_files", "a", "r"), None)]
    assert any("3 times in a row" in told.issue for told in Watch().play(events))


def test_the_gravest_of_several_counts() -> None:
    figures = StuckFigures.model_validate({"nothing_new": {"nudge": 2, "then": 4}})
    *_, last = Watch(figures).play([did("list_files", "a", "r")] * 5)
    assert isinstance(last, Wait)


def test_a_narrowed_phase_takes_only_the_two_ways_out() -> None:
    watch = Watch()
    verdict = watch.play([did("list_files", "a", "r")] * 5)[-1]
    assert isinstance(verdict, Narrow)
    course = narrow(watch.course, verdict, step=7)
    assert not_now(Course(), "list_files", 3) is None
    assert not_now(course, "todo_rewind", 3) is None
    assert not_now(course, "todo_complete", 3) is None
    told = str(not_now(course, "list_files", 3))
    assert "only todo_rewind and todo_complete are accepted" in told
    assert "todo 3" in told
    assert overdue(course, step=7) is None
    assert overdue(course, step=8) == verdict.issue
    watch.course = course
    assert watch.play([did("list_files", "a", error="no", denied=True)] * 20) == []
    assert watch.course.narrowed
    watch.play([completed(1)])
    assert overdue(watch.course, step=9) is None


def polled(result: object, **more: bool) -> Happened:
    return did("build_status", "", result, polling=True, **more)


WAITED = did("wait", 60, "Waited 60 s.")


def test_polling_is_no_repetition_while_its_result_changes() -> None:
    assert Watch().play(polled(f"{k} %") for k in range(200)) == []
    assert Watch().play(polled(f"{k % 2}") for k in range(200)) == []
    assert Watch().play(did("read_file", "a", k % 2) for k in range(200)) != []


def test_polling_a_result_that_does_not_change_is_one() -> None:
    assert len(Watch().play([polled("running")] * 4)) == 1
    assert isinstance(Watch().play([polled("running")] * 6)[-1], Narrow)


def test_polling_between_waits_may_find_the_same() -> None:
    assert Watch().play([polled("running"), WAITED] * 50) == []


def test_a_polling_call_that_fails_is_one() -> None:
    *_, last = Watch().play([did("build_status", "", error="gone", polling=True)] * 4)
    assert isinstance(last, Narrow)


def test_waiting_is_never_being_stuck() -> None:
    assert Watch().play([WAITED] * 1000) == []
    refused = Watch().play([did("wait", 9**9, error="too long")] * 4)
    assert isinstance(refused[-1], Narrow)


def test_reading_page_by_page_is_no_repetition() -> None:
    assert Watch().play(map(news, range(59))) == []


def test_different_reasons_for_a_refusal_are_steps_on_the_way() -> None:
    assert Watch().play(refused("todo_complete", lambda k: f"reason {k}")(10)) == []


def test_a_changed_file_is_news_whatever_the_result_says() -> None:
    events = [did("edit_file", k, "Replaced 1 passage.", changed=True) for k in range(59)]
    assert Watch().play(events) == []


def test_a_completed_todo_ends_every_run() -> None:
    for _, events, _ in PATTERNS.values():
        watch = Watch()
        watch.play([*events(2), completed(1)])
        assert watch.course.deeds == []
        assert (watch.course.replies, watch.course.stale, watch.course.refusals) == (0, 0, 0)


def test_the_same_read_for_each_todo_is_no_loop() -> None:
    todo = [did("read_file", "instructions.md", "all"), did("write_file", "x", "w", changed=True)]
    events = [e for n in range(20) for e in (*todo, completed(n))]
    assert Watch().play(events) == []


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_window_is_the_same_in_a_new_run(pattern: str) -> None:
    row, events, _ = PATTERNS[pattern]
    played = events(getattr(FIGURES, row).then)
    whole = Watch().play(played)
    again, told = Watch(), []
    for event in played:
        told += again.play([event])
        job = record(course=again.course)
        carried = type(job).model_validate(job.model_dump(mode="json", exclude_defaults=True))
        again.course = carried.course
    assert told == whole


def test_the_window_is_bounded() -> None:
    watch = Watch()
    watch.play(event for k in range(1000) for event in (news(k), polled(k)))
    watch.play(did("build_status", k, k, polling=True) for k in range(1000))
    assert len(watch.course.deeds) <= window(FIGURES)
    assert len(watch.course.seen) <= MAX_SEEN
    assert len(watch.course.polled) <= MAX_POLLED
    assert len(watch.course.model_dump_json()) < 8000


fresh = count()
HONEST: list[Callable[[], Sequence[Event]]] = [
    lambda: [news(next(fresh))],
    lambda: [did("edit_file", next(fresh), "Replaced 1 passage.", changed=True)],
    lambda: [WAITED],
    lambda: [polled(next(fresh))],
    lambda: [polled("running"), WAITED, polled("running")],
    lambda: [None, news(next(fresh))],
    lambda: [did("read_file", "plan.md", "plan"), news(next(fresh))],
    lambda: [did("edit_file", next(fresh), error="stale"), news(next(fresh))],
    lambda: [did("todo_complete", "", error=f"reason {next(fresh)}"), news(next(fresh))],
]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.sampled_from(HONEST), max_size=14), max_size=12))
def test_honest_work_is_never_told_that_it_is_stuck(
    todos: list[list[Callable[[], Sequence[Event]]]],
) -> None:
    watch = Watch()
    for part in todos:
        for work in part:
            assert watch.play(work()) == []
        assert watch.play([completed(next(fresh))]) == []
