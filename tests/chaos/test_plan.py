"""Plans are drawn from the seed alone."""

from tests.chaos.plan import KINDS, draw


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
