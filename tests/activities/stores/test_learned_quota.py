"""What refusals teach of an endpoint's quota: how far the rate falls, and how it grows again."""

import pytest

from activities.stores.learned_quota import LearnedQuota, NamedLimits, Quota

NOTHING = Quota(None, None)


def test_the_first_refusal_leaves_nine_tenths_of_what_was_used() -> None:
    learned = LearnedQuota()
    assert learned.note_refusal(100, None, sent=200) == 1
    assert learned.fill(NOTHING) == Quota(180, None)
    # Those sent before say nothing new, nor do others until the endpoint has answered.
    assert learned.note_refusal(130, 99, sent=200) == 2
    assert learned.note_refusal(131, 125, sent=200) == 4
    assert learned.rate == 180


def test_each_later_refusal_lowers_the_rate_once_in_ten_seconds_down_to_a_floor() -> None:
    learned = LearnedQuota()
    learned.note_refusal(100, None, sent=200)
    for now, rate in ((105, 180), (111, 162), (115, 162), (122, 145.8)):
        learned.note_answer(now)
        learned.note_refusal(now, now - 0.5, sent=150)
        assert learned.rate == pytest.approx(rate)
    for now in range(200, 20_000, 20):
        learned.note_answer(now)
        learned.note_refusal(now, now - 0.5, sent=150)
    assert learned.rate == 20


def test_a_refusal_of_few_requests_teaches_no_rate() -> None:
    learned = LearnedQuota()
    for now in range(100, 400, 20):
        learned.note_answer(now)
        learned.note_refusal(now, None, sent=12)
    assert learned.fill(NOTHING) == NOTHING


def test_refusals_without_an_answer_pause_for_a_minute_at_most() -> None:
    learned = LearnedQuota()
    pauses = [learned.note_refusal(100 + number, None, sent=200) for number in range(2_000)]
    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(pauses[7:]) == {60}


def test_a_refusal_of_far_less_than_the_rate_begins_at_what_was_used() -> None:
    learned = LearnedQuota(rate=1_000)
    learned.note_refusal(110, 105, sent=100)
    assert learned.fill(NOTHING).requests == pytest.approx(90)


def test_a_refusal_lowers_the_limits_that_are_named_for_minutes() -> None:
    learned = LearnedQuota()
    learned.note_limits(NamedLimits(240.0, 1_000.0), 100)
    learned.note_refusal(110, 105, sent=3)
    lowered = learned.fill(NOTHING)
    assert (lowered.requests, lowered.tokens) == pytest.approx((228, 950))
    for now in range(110, 141):
        learned.note_waiting_turn(now)
    assert learned.share == pytest.approx(0.975)
    for now in range(141, 200):
        learned.note_waiting_turn(now)
    assert learned.fill(NOTHING) == Quota(240, 1_000)


def test_the_rate_grows_while_calls_wait() -> None:
    learned = LearnedQuota()
    learned.note_refusal(100, None, sent=200)
    for now in range(100, 161):
        learned.note_waiting_turn(now)
    assert learned.rate == pytest.approx(190)
    for now in range(161, 341):
        learned.note_waiting_turn(now)
    # A minute to the rate that was refused, then faster and faster.
    assert learned.rate and 440 < learned.rate < 460
    # A night in which nobody waited teaches nothing.
    before = learned.rate
    learned.note_waiting_turn(40_000)
    assert learned.rate - before < 30


def test_a_storm_before_the_limits_were_known_lowers_nothing() -> None:
    learned = LearnedQuota()
    learned.note_limits(NamedLimits(60.0, 1_000.0), 100)
    learned.note_refusal(101, None, sent=200)
    assert learned.fill(NOTHING) == Quota(60, 1_000)


@pytest.mark.parametrize("stored", ["", "{", '{"unknown": 1}'])
def test_what_cannot_be_read_counts_as_nothing(stored: str) -> None:
    assert LearnedQuota.read(stored, 5) == LearnedQuota()
