"""Shares of a trial's limits, as figures."""

from __future__ import annotations

from typing import Any

import pytest

from protocol.trial_start import TrialLimits
from protocol.trial_status import TrialRun
from protocol.usage import Usage
from workflows.trial_shares import (
    first_share,
    free_trial_amount,
    larger_share,
    lowered_trial_shares,
    release_unused_share,
    scarce_trial_limit,
)

CALLS = TrialLimits(model_calls=100)


def run(status: str, **fields: Any) -> TrialRun:
    return TrialRun.model_validate(
        {"job": "run", "configuration": "now", "status": status, **fields}
    )


@pytest.mark.parametrize(
    ("each", "charged"),
    [
        (run("pending", share={"model_calls": 30}), 0),
        (run("unstarted"), 0),
        (run("running", share={"model_calls": 30}), 30),
        (run("completed", share={"model_calls": 30}, usage=Usage(model_calls=12)), 12),
        (run("late", share={"model_calls": 30}), 30),
        (
            run("late", share={"model_calls": 30}, usage=Usage(model_calls=12), interrupted=True),
            30,
        ),
        (run("cut", share={"model_calls": 30}, usage=Usage(model_calls=29)), 29),
    ],
)
def test_run_is_charged_its_share_until_its_use_is_certain(each: TrialRun, charged: float) -> None:
    assert free_trial_amount(CALLS, [each], "model_calls") == 100 - charged


def test_run_starts_with_an_even_part_of_what_ended_runs_left() -> None:
    runs = [run("pending") for _ in range(4)]
    assert first_share(CALLS, runs) == {"model_calls": 25}
    runs[0] = run("running", share={"model_calls": 25})
    assert first_share(CALLS, runs) == {"model_calls": 25}
    runs[0] = run("completed", usage=Usage(model_calls=10))
    assert first_share(CALLS, runs) == {"model_calls": 30}


def test_run_starts_with_less_if_an_older_one_needed_more() -> None:
    runs = [run("running", share={"model_calls": 90}), run("pending")]
    assert first_share(CALLS, runs) == {"model_calls": 10}


def test_run_does_not_start_with_less_than_a_job_needs() -> None:
    runs = [run("running", share={"model_calls": 99}), run("pending")]
    assert first_share(CALLS, runs) is None


def test_run_without_limits_has_no_share() -> None:
    assert first_share(TrialLimits(seconds=5), [run("pending")]) == {}


def test_oldest_run_gets_what_it_needs_and_half_of_the_rest() -> None:
    waiting = run("running", job="a", share={"model_calls": 60}, needs={"model_calls": 64})
    other = run("running", job="b", share={"model_calls": 20})
    assert larger_share(CALLS, [waiting, other], waiting) == {"model_calls": 72}
    assert larger_share(CALLS, [waiting], waiting) == {"model_calls": 100}


def test_younger_run_gets_no_more_than_an_even_part() -> None:
    older = run("running", job="a", share={"model_calls": 30})
    waiting = run("running", job="b", share={"model_calls": 20}, needs={"model_calls": 21})
    assert larger_share(CALLS, [older, waiting], waiting) == {"model_calls": 50}
    waiting.share, waiting.needs = {"model_calls": 50}, {"model_calls": 51}
    assert larger_share(CALLS, [older, waiting], waiting) is None
    older.waiting = "clarification"
    assert larger_share(CALLS, [older, waiting], waiting) == {"model_calls": 60}


def test_waiting_run_releases_what_it_has_not_used_once_it_has_taken_the_lowered_share() -> None:
    waiting = run("running", share={"model_calls": 50, "cost": 2.0}, waiting="clarification")
    used = {"model_calls": 12.0, "cost": 0.0}
    assert release_unused_share(waiting, used)
    assert waiting.lowered == {"model_calls": 12, "cost": 1e-9}
    assert (free_trial_amount(CALLS, [waiting], "model_calls"), waiting.released) == (50, False)
    assert not release_unused_share(waiting, used)
    assert (free_trial_amount(CALLS, [waiting], "model_calls"), waiting.released) == (88, True)
    assert not release_unused_share(waiting, used)


def test_run_that_went_on_before_its_share_was_lowered_is_charged_what_it_used() -> None:
    gone_on = run("running", share={"model_calls": 50}, lowered={"model_calls": 12})
    assert not release_unused_share(gone_on, {"model_calls": 14})
    assert (gone_on.share, gone_on.lowered) == ({"model_calls": 14}, {})
    assert not gone_on.released


def test_run_gets_nothing_that_would_not_be_enough() -> None:
    waiting = run("running", share={"tokens": 5000}, needs={"tokens": 30_000})
    other = run("running", share={"tokens": 10_000})
    limits = TrialLimits(tokens=35_000)
    assert larger_share(limits, [waiting, other], waiting) is None
    assert scarce_trial_limit(limits, [waiting, other]) == "tokens"


def test_lowered_limit_takes_only_from_shares_above_an_even_division() -> None:
    runs = [run("running", job="a", share={"cost": 3.0}), run("running", job="b")]
    runs[1].share = {"cost": 0.5}
    assert lowered_trial_shares(TrialLimits(cost=2), runs) == {"a": {"cost": 1.0}}


def test_new_limit_divides_what_is_left_and_other_limits_stay() -> None:
    runs = [run("running", job=name, share={"model_calls": 10}) for name in ("a", "b")]
    limits = TrialLimits(model_calls=100, tokens=9000)
    share = {"model_calls": 10, "tokens": 4500}
    assert lowered_trial_shares(limits, runs) == {"a": share, "b": share}


def test_lowered_limit_leaves_runs_at_work_no_more_than_the_rest_of_it() -> None:
    runs = [
        run("completed", job="a", usage=Usage(model_calls=3)),
        run("running", job="b", share={"model_calls": 3}),
        run("running", job="c", share={"model_calls": 3}),
    ]
    shares = lowered_trial_shares(TrialLimits(model_calls=5), runs)
    assert shares == {"b": {"model_calls": 1}, "c": {"model_calls": 1}}
    assert lowered_trial_shares(TrialLimits(model_calls=2), runs) == shares
