"""What is cleared and what is folded: the safest rung that is enough, calls never torn apart."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.job.compaction_plan import (
    ENOUGH,
    KEPT_RESULTS,
    SUMMARY_TOKENS,
    CompactionPlan,
    MessageSize,
    plan_compaction,
)

OPENING = [MessageSize("system", 1000, 1000), MessageSize("user", 500, 500)]
NOTHING = CompactionPlan(0, 0)


def exchange(result: int = 1000, call: int = 100, results: int = 1) -> list[MessageSize]:
    return [
        MessageSize("assistant", call, call),
        *[MessageSize("tool", result, min(result, 30))] * results,
    ]


def reading(path_is_needed: bool, result: int = 1000) -> list[MessageSize]:
    return [MessageSize("assistant", 100, 100), MessageSize("tool", result, 30, path_is_needed)]


def planned(
    pieces: list[MessageSize], limit: int, present: CompactionPlan = NOTHING, hard: bool = False
) -> CompactionPlan:
    return plan_compaction(pieces, 2, present, 300, limit, hard=hard)


def shown(pieces: list[MessageSize], plan: CompactionPlan) -> int:
    """Return the tokens of a request under this plan."""
    total = 300 + sum(piece.tokens for piece in pieces[:2])
    total += SUMMARY_TOKENS if plan.folded > 2 else 0
    for number in range(max(2, plan.folded), len(pieces)):
        piece = pieces[number]
        brief = number < plan.cleared and number not in plan.spared
        total += piece.cleared if brief else piece.tokens
    return total


def test_clearing_is_enough_where_results_are_what_is_long() -> None:
    pieces = OPENING + exchange() * 20
    plan = planned(pieces, 20_000)
    assert plan.folded == 0
    assert shown(pieces, plan) <= ENOUGH * 20_000
    # No more than necessary, and never the last five.
    assert shown(pieces, CompactionPlan(plan.cleared - 2, 0)) > ENOUGH * 20_000
    plan = planned(pieces, 12_400)
    remaining = [piece for piece in pieces[plan.cleared :] if piece.role == "tool"]
    assert len(remaining) == KEPT_RESULTS


def test_short_results_are_not_counted_among_the_last_five() -> None:
    pieces = OPENING + exchange() * 8 + exchange(result=30) * 8
    plan = planned(pieces, 12_000)
    assert sum(piece.tokens == 1000 for piece in pieces[plan.cleared :]) == KEPT_RESULTS


def test_what_an_open_todo_names_is_cleared_last() -> None:
    pieces = OPENING + reading(True) + reading(False) * 14
    plan = planned(pieces, 20_000)
    assert plan.spared == (3,)
    assert shown(pieces, plan) <= ENOUGH * 20_000
    assert planned(pieces, 20_000, plan).spared == (3,)
    # It is cleared too when nothing else is left.
    assert planned(pieces, 9_000).spared == ()


def test_exchanges_are_folded_where_clearing_is_not_enough() -> None:
    pieces = OPENING + exchange(result=100, call=1000) * 40
    plan = planned(pieces, 20_000)
    assert plan.folded > 2
    assert pieces[plan.folded].role == "assistant"
    assert shown(pieces, plan) <= 10_000
    # With one exchange fewer folded it would still be too much.
    assert shown(pieces, CompactionPlan(plan.cleared, plan.folded - 2)) > 10_000


def test_the_last_exchange_stays_whatever_its_size() -> None:
    pieces = OPENING + exchange(call=30_000) * 3
    assert planned(pieces, 20_000).folded == len(pieces) - 2


def test_what_the_model_has_not_seen_stays_where_it_fits() -> None:
    # The newest reply has fifteen results, and older ones make room for them.
    pieces = OPENING + exchange() * 10 + exchange(results=15)
    plan = planned(pieces, 24_000)
    assert plan == CompactionPlan(cleared=22, folded=22)
    assert shown(pieces, plan) <= 24_000
    assert planned(pieces, 28_000) == CompactionPlan(cleared=18, folded=0)
    # Too many to fit: as many stay as fit, and the others are recorded as unseen.
    pieces = OPENING + exchange(results=20)
    expected = planned(pieces, 20_000)
    assert (expected.folded, expected.unseen) == (0, 2)
    assert expected.cleared < len(pieces) - KEPT_RESULTS
    assert shown(pieces, expected) <= ENOUGH * 20_000
    assert planned([*pieces, *exchange()], 20_000, expected).unseen == 2
    # A few long ones: as many stay as fit, and the last one whatever its size.
    pieces = OPENING + exchange() + exchange(results=4, result=5_000)
    assert planned(pieces, 24_000) == CompactionPlan(cleared=4, folded=4)
    assert planned(pieces, 15_000) == CompactionPlan(cleared=len(pieces) - 2, folded=4, unseen=4)
    assert planned(pieces, 3_000) == CompactionPlan(cleared=len(pieces) - 1, folded=4, unseen=4)
    # If the endpoint refuses that as too long, then before the whole reply is folded.
    hard = CompactionPlan(cleared=len(pieces) - 1, folded=4, unseen=4)
    assert planned(pieces, 24_000, hard=True) == hard


def test_the_endpoints_word_goes_over_our_count() -> None:
    pieces = OPENING + exchange() * 3
    assert planned(pieces, 100_000).folded == 0
    plan = planned(pieces, 5_000, hard=True)
    assert plan.folded > 2
    # By our count clearing would be enough; the endpoint counts differently.
    assert planned(OPENING + exchange() * 10, 24_000).folded == 0
    assert planned(OPENING + exchange() * 10, 24_000, hard=True).folded == 4
    huge = OPENING + exchange(call=300_000)
    assert planned(huge, 80_000, hard=True).folded == len(huge)


def test_nothing_that_was_taken_away_comes_back() -> None:
    pieces = OPENING + exchange() * 30
    present = CompactionPlan(cleared=50, folded=42)
    plan = planned(pieces, 1_000_000, present)
    assert plan.folded == 42
    assert plan.cleared >= 50


def test_a_phase_that_has_only_begun_has_nothing_to_give() -> None:
    assert planned(list(OPENING), 1000).folded == 0
    assert planned(list(OPENING), 1000, hard=True).folded in (0, 2)


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(10, 6000), st.integers(1, 6), st.integers(10, 6000)), max_size=40
    ),
    st.integers(4000, 90_000),
    st.booleans(),
)
def test_whatever_the_sizes(exchanges: list[tuple[int, int, int]], limit: int, hard: bool) -> None:
    pieces = list(OPENING)
    for call, results, result in exchanges:
        pieces += exchange(result, call, results)
    plan = planned(pieces, limit, hard=hard)
    start = max(2, plan.folded)
    if start < len(pieces):
        assert pieces[start].role == "assistant"
    if not hard and exchanges:
        last = max(n for n, piece in enumerate(pieces) if piece.role == "assistant")
        assert plan.folded <= last
        if last > 2 and plan.folded < last:
            assert shown(pieces, plan) <= ENOUGH * limit
    # A second plan for the same conversation clears the same or more, never less.
    again = planned(pieces, limit, plan, hard)
    assert again.folded >= plan.folded
    assert again.cleared >= plan.cleared


@pytest.mark.parametrize("hard", [False, True])
def test_planning_twice_gives_the_same(hard: bool) -> None:
    pieces = OPENING + exchange(call=900) * 60
    assert planned(pieces, 20_000, hard=hard) == planned(pieces, 20_000, hard=hard)
