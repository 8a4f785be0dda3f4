"""Tests for shares of completed runs and their comparison, against published values."""

from fractions import Fraction

import pytest

from cli.trials.trial_statistics import (
    Share,
    all_complete_rate,
    compare_completion_shares,
    fisher_probability,
    share_interval,
)


@pytest.mark.parametrize(
    ("share", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17, table I, method 3.
        (Share(81, 263), 0.2553, 0.3662),
        (Share(15, 148), 0.0624, 0.1605),
        (Share(0, 20), 0.0, 0.1611),
        (Share(1, 29), 0.0061, 0.1718),
        (Share(20, 20), 0.8389, 1.0),
    ],
)
def test_interval_is_that_of_wilson(share: Share, low: float, high: float) -> None:
    assert share_interval(share) == pytest.approx((low, high), abs=0.00006)


def test_nothing_is_known_of_a_share_without_runs() -> None:
    assert share_interval(Share(0, 0)) == (0.0, 1.0)


def test_fisher_probability_of_the_tea_tasting_is_exact() -> None:
    assert fisher_probability(Share(3, 4), Share(1, 4)) == Fraction(34, 70)
    assert fisher_probability(Share(4, 4), Share(0, 4)) == Fraction(2, 70)


def test_fisher_probability_does_not_depend_on_the_order() -> None:
    first, second = Share(9, 10), Share(3, 12)
    assert fisher_probability(first, second) == fisher_probability(second, first)


def test_equal_shares_have_probability_one() -> None:
    assert fisher_probability(Share(5, 10), Share(5, 10)) == 1
    assert fisher_probability(Share(0, 3), Share(0, 3)) == 1


def test_clear_difference_is_stated_with_its_direction() -> None:
    [worse] = compare_completion_shares({"now": Share(9, 10), "short": Share(1, 10)})
    assert "short completes less often (p = 0.001" in worse
    [better] = compare_completion_shares({"now": Share(1, 10), "long": Share(9, 10)})
    assert "long completes more often" in better


def test_difference_that_may_be_chance_is_not_stated() -> None:
    [sentence] = compare_completion_shares({"now": Share(5, 10), "new": Share(8, 10)})
    assert "new completed 8 of 10, now 5 of 10: the difference may be chance" in sentence
    assert "does not show that they are equally good" in sentence


def test_three_runs_each_cannot_show_any_difference() -> None:
    [sentence] = compare_completion_shares({"now": Share(3, 3), "new": Share(0, 3)})
    assert "so few runs cannot show any difference (p = 0.100" in sentence


def test_level_is_divided_among_the_comparisons() -> None:
    pair = {"now": Share(4, 4), "a": Share(0, 4)}
    assert "a completes less often" in compare_completion_shares(pair)[0]
    sentences = compare_completion_shares({**pair, "b": Share(4, 4)})
    assert "completes less often" not in sentences[0]
    assert len(sentences) == 2


def test_configuration_without_ended_runs_is_not_compared() -> None:
    [sentence] = compare_completion_shares({"now": Share(2, 2), "new": Share(0, 0)})
    assert "nothing can be said" in sentence


def test_impossible_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="3 of 2 runs"):
        Share(3, 2)


@pytest.mark.parametrize(
    ("share", "count", "rate"),
    [(Share(4, 4), 2, 1.0), (Share(2, 4), 2, 1 / 6), (Share(1, 4), 2, 0.0), (Share(3, 4), 1, 0.75)],
)
def test_how_likely_so_many_in_a_row_complete(share: Share, count: int, rate: float) -> None:
    assert all_complete_rate(share, count) == pytest.approx(rate)


def test_few_runs_say_nothing_of_many() -> None:
    with pytest.raises(ValueError, match="2 runs say nothing of 3"):
        all_complete_rate(Share(2, 2), 3)
