"""Work that looks repetitive and is not: what stuck detection must not take for a loop."""

from collections.abc import Callable, Sequence
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from protocol.stuck_thresholds import StuckThresholds
from tests.soak import soak
from tests.workflows.courses import Event, Watch, completed, did, news, refused
from workflows.rules.course import MAX_POLLED, MAX_SEEN, CallOutcome, course_window_size
from workflows.rules.stuck import Narrow, Wait

FIGURES = StuckThresholds()


def polled(result: object, **more: bool) -> CallOutcome:
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


def test_any_call_may_be_made_again_after_a_wait_but_not_for_ever() -> None:
    looked = did("run_command", "gh run view", "in progress")
    down = did("fetch_page", "localhost", error="refused")
    early = did("todo_complete", "", error="It is done when `make ci` succeeds.")
    for event in (looked, down, early):
        assert Watch().play([event, WAITED] * 14) == []
        assert isinstance(Watch().play([event, WAITED] * 41)[-1], Wait)
    assert isinstance(Watch().play([looked] * 5)[-1], Narrow)


def test_polls_between_waits_are_no_run() -> None:
    assert Watch().play([polled("running"), WAITED, polled("running")] * 4) == []


def test_reading_page_by_page_is_no_repetition() -> None:
    assert Watch().play(map(news, range(59))) == []


def test_different_reasons_for_a_refusal_are_steps_on_the_way() -> None:
    assert Watch().play(refused("todo_complete", lambda k: f"reason {k}")(10)) == []


def test_a_changed_file_is_news_whatever_the_result_says() -> None:
    events = [did("edit_file", k, "Replaced 1 passage.", changed=True) for k in range(59)]
    assert Watch().play(events) == []


def test_the_same_read_for_each_todo_is_no_loop() -> None:
    todo = [did("read_file", "instructions.md", "all"), did("write_file", "x", "w", changed=True)]
    events = [e for n in range(20) for e in (*todo, completed(n))]
    assert Watch().play(events) == []


def test_the_window_is_bounded() -> None:
    watch = Watch()
    watch.play(event for k in range(1000) for event in (news(k), polled(k)))
    watch.play(did("build_status", k, k, polling=True) for k in range(1000))
    assert len(watch.course.recent_calls) <= course_window_size(FIGURES)
    assert len(watch.course.seen_results) <= MAX_SEEN
    assert len(watch.course.polled_results) <= MAX_POLLED
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


@settings(max_examples=soak(30, 100), deadline=None)
@given(st.lists(st.lists(st.sampled_from(HONEST), max_size=14), max_size=12))
def test_honest_work_is_never_told_that_it_is_stuck(
    todos: list[list[Callable[[], Sequence[Event]]]],
) -> None:
    watch = Watch()
    for part in todos:
        for work in part:
            assert watch.play(work()) == []
        assert watch.play([completed(next(fresh))]) == []
