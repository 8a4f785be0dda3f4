"""Plans are drawn from the seed alone."""

from itertools import pairwise

from tests.chaos.plan import KINDS, draw
from tests.chaos.two_days import HOURS, LASTING, draw_schedule


def test_the_same_seed_gives_the_same_plan_and_another_one_another() -> None:
    plans = [draw(seed, "creator", 80, 6, KINDS) for seed in (7, 7, 8)]
    assert plans[0] == plans[1] != plans[2]
    assert plans[0] != draw(7, "pipeline", 80, 6, KINDS)


def test_every_kind_comes_before_any_comes_again() -> None:
    kinds = [blow.kind for blow in draw(7, "creator", 80, 2 * len(KINDS), KINDS)]
    assert set(kinds[: len(KINDS)]) == set(kinds[len(KINDS) :]) == set(KINDS)


def test_the_blows_leave_calls_for_a_recovery_after_each() -> None:
    for calls in (6, 80, 1000):
        assert sum(blow.after for blow in draw(7, "creator", calls, 6, KINDS)) <= max(6, calls / 2)


def test_blows_overlap_where_they_befall_different_parts() -> None:
    drawn = [blow for seed in range(50) for blow in draw(seed, "creator", 80, 20, KINDS)]
    both = {(blow.kind, blow.meanwhile) for blow in drawn if blow.meanwhile}
    assert {("stall model", "full disk"), ("full disk", "refuse temporal")} <= both
    assert all(kind != other for kind, other in both)
    assert not any("model" in kind and "model" in str(other) for kind, other in both)
    assert not any(kind.startswith(("kill", "freeze", "cut")) for kind, _ in both)


def test_the_two_days_have_every_blow_in_its_hour_by_the_seed_alone() -> None:
    schedules = [draw_schedule(seed, HOURS - 1) for seed in (7, 7, 8)]
    assert schedules[0] == schedules[1] != schedules[2]
    kills = [moment.hour for moment in schedules[0] if moment.event == "kill worker"]
    assert [int(hour) for hour in kills] == list(range(HOURS - 1))
    others = [moment for moment in schedules[0] if moment.event != "kill worker"]
    assert {moment.event for moment in others} == set(LASTING)
    assert all(before.hour + before.hours < after.hour + 0.5 for before, after in pairwise(others))
    assert others[-1].hour + others[-1].hours < HOURS
