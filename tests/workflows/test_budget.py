"""Whether a budget allows the next call: fully reserved before it, settled by actual use."""

import json
from typing import Any

import pytest

from protocol.job_record import JobRecord, Review
from protocol.limits import Budget, JobLimits
from protocol.requests import Call
from protocol.status import LimitUse
from protocol.usage import Price, Usage
from tests.workflows.records import record
from workflows.rules import budget, reservations
from workflows.rules.budget import ExceededBudgetLimit, exceeded_limit, limits_after_signal
from workflows.rules.reservations import TOOL_CALL, Reservation

PRICE = Price(prompt=2, cached=0.2, completion=10)
USED = Usage(
    model_calls=9, tool_calls=11, prompt_tokens=900, completion_tokens=100, cost=1.97
)  # fmt: skip
CALL = Reservation(model_calls=1, tokens=200, cost=0.06)


def spending(scope: str, **limits: Any) -> JobRecord:
    """Return a job with these limits in one scope, which it has used as in USED; the other is
    unused.
    """
    budgets = {"job": Budget(), "phase": Budget(), scope: Budget(**limits)}
    job = record(limits=JobLimits.model_validate(budgets | {"price": PRICE}))
    if scope == "job":
        job.usage, job.seconds = USED, 60.5
    else:
        job.phase_usage, job.phase_seconds = USED, 60.5
    return job


@pytest.mark.parametrize("scope", ["job", "phase"])
@pytest.mark.parametrize(
    ("key", "enough", "too_small", "reservation"),
    [
        ("model_calls", 10, 9, CALL),
        ("tool_calls", 12, 11, TOOL_CALL),
        ("tokens", 1200, 1199, CALL),
        ("cost", 2.03, 2.029, CALL),
        ("seconds", 61, 60, CALL),
        ("seconds", 61, 60, TOOL_CALL),
    ],
)
def test_a_limit_may_be_reached_and_not_passed(
    scope: str, key: str, enough: float, too_small: float, reservation: Reservation
) -> None:
    assert exceeded_limit(spending(scope, **{key: enough}), reservation) is None
    exceeded = exceeded_limit(spending(scope, **{key: too_small}), reservation)
    assert exceeded is not None
    assert (exceeded.scope, exceeded.key, exceeded.limit) == (scope, key, too_small)
    assert exceeded_limit(spending(scope), reservation) is None


def test_no_time_is_left_when_as_much_has_passed() -> None:
    job = spending("job", seconds=60)
    job.seconds = 59.999
    assert exceeded_limit(job, CALL) is None
    job.seconds = 60.0
    assert exceeded_limit(job, CALL)


def test_what_a_call_does_not_use_does_not_stop_it() -> None:
    assert exceeded_limit(spending("job", tokens=1, cost=0.01, model_calls=1), TOOL_CALL) is None
    assert exceeded_limit(spending("job", tool_calls=1), CALL) is None


def test_money_is_compared_without_the_drift_of_binary_fractions() -> None:
    job = spending("job", cost=0.3)
    job.usage = Usage()
    for _ in range(2):
        job.add_usage(Usage(cost=0.1))
    assert exceeded_limit(job, Reservation(cost=0.1)) is None
    job.add_usage(Usage(cost=0.1))
    assert job.usage.cost == 0.3


def test_a_model_call_reserves_what_will_be_sent_and_a_whole_reply() -> None:
    job = spending("job")
    job.limits.output_tokens, job.context = 1000, 5000
    call = reservations.model_reply_reservation(job)
    assert (call.model_calls, call.tool_calls, call.tokens) == (1, 0, 6000)
    assert call.cost == pytest.approx(5000 * 2e-6 + 1000 * 10e-6)
    job.context = 10**6
    assert reservations.summary_call_reservation(job).tokens == reservations.SUMMARY_TOKENS + 1000
    assert reservations.compaction_reservation(job).tokens == 2 * (10**6 + 1000)


@pytest.mark.parametrize("price", [None, Price(prompt=0, completion=0)])
def test_what_costs_nothing_is_not_stopped_by_a_limit_on_cost(price: Price | None) -> None:
    assert (
        exceeded_limit(
            spending("job", cost=1.97), reservations.model_call_reservation(1000, 1000, price)
        )
        is None
    )


def test_cached_tokens_are_charged_apart_and_without_a_price_as_others() -> None:
    assert PRICE.cost(1_000_000, 400_000, 100_000) == pytest.approx(1.2 + 0.08 + 1)
    assert Price(prompt=2, completion=0).cost(1_000_000, 400_000, 5) == 2
    written = Price(prompt=2, written=2.5, completion=0)
    assert written.cost(1_000_000, 0, 0, 400_000) == pytest.approx(1.2 + 1)
    assert written.max_cost(1_000_000, 0) == pytest.approx(2.5)
    assert reservations.model_call_reservation(1_000_000, 0, written).cost == pytest.approx(2.5)
    assert PRICE.cost(1_000_000, 400_000, 0, 9_000_000) == pytest.approx(1.2 + 0.08)
    # More cached than sent is an endpoint's mistake and lowers no cost.
    assert PRICE.cost(1_000_000, 9_000_000, 0) == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("exceeded", "message", "command"),
    [
        (
            ExceededBudgetLimit("job", "cost", 2.0, 1.97, 0.06),
            "The job's cost limit is 2.00; 1.97 are spent and the next call may cost 0.06.",
            "limit tea cost=4.00`",
        ),
        (
            ExceededBudgetLimit("job", "cost", 0.0004, 0.001, 0.0000014),
            "The job's cost limit is 0.0004; 0.001 are spent and the next call may cost 0.000001.",
            "limit tea cost=0.001002`",
        ),
        (
            ExceededBudgetLimit("phase", "tokens", 10_000, 9_500, 8_000),
            "The phase's limit is 10,000 tokens; 9,500 are used and the next call may use 8,000.",
            "limit tea phase.tokens=20000`",
        ),
        (
            ExceededBudgetLimit("phase", "model_calls", 500, 500, 1),
            "The phase's limit is 500 model calls; 500 are made.",
            "limit tea phase.model_calls=1000`",
        ),
        (
            ExceededBudgetLimit("job", "model_calls", 27, 26, 2),
            "The job's limit is 27 model calls; 26 are made and the next step may make 2.",
            "limit tea model_calls=54`",
        ),
        (
            ExceededBudgetLimit("phase", "model_calls", 1, 1, 1),
            "The phase's limit is 1 model call; 1 is made.",
            "limit tea phase.model_calls=2`",
        ),
        (
            ExceededBudgetLimit("job", "tool_calls", 5, 5, 1),
            "The job's limit is 5 tool calls; 5 are made.",
            "limit tea tool_calls=10`",
        ),
        (
            ExceededBudgetLimit("job", "seconds", 60, 150.4, 0),
            "The job's limit is 60 seconds; 150 have passed.",
            "limit tea seconds=151`",
        ),
    ],
)
def test_a_person_is_told_what_is_short_and_the_command(
    exceeded: ExceededBudgetLimit, message: str, command: str
) -> None:
    assert exceeded.message == message
    waiting = exceeded.wait_state("tea")
    assert (waiting.reason, waiting.command) == ("budget", f"starter.py {command.rstrip('`')}")
    assert f"`{waiting.command}`" in waiting.remedy
    assert command.replace("tea", "'tea; ls'") in exceeded.wait_state("tea; ls").remedy


def test_what_comes_next_is_a_compaction_where_one_is_due() -> None:
    job = record(limits=JobLimits(context_tokens={"strategic": 1000, "tactical": 1000}))
    job.context = job.context_limit
    assert reservations.next_call_reservation(job) == reservations.compaction_reservation(job)
    job.compacted_context = job.context
    assert reservations.next_call_reservation(job) == reservations.model_reply_reservation(job)
    job.compacted_context, job.calls = 0, [Call(tool="list_files")]
    assert reservations.next_call_reservation(job) == TOOL_CALL


def test_new_limits_change_what_they_name_and_nothing_else() -> None:
    limits = JobLimits(job=Budget(cost=2, tokens=50), price=PRICE)
    new = limits_after_signal(limits, "m", {"cost": 20.0, "phase": {"model_calls": 800}})
    assert isinstance(new, JobLimits)
    assert new.job == Budget(cost=20, tokens=50)
    assert new.phase == Budget(model_calls=800)
    assert limits.job.cost == 2


@pytest.mark.parametrize("payload", [{"cost": 20.0}, {"phase": {"cost": 20.0}}])
def test_cost_cannot_be_limited_where_the_price_is_unknown(payload: dict[str, Any]) -> None:
    refusal = limits_after_signal(JobLimits(), "gpt-5-mini", payload)
    assert isinstance(refusal, str)
    assert "prices.gpt-5-mini" in refusal
    assert isinstance(limits_after_signal(JobLimits(), "gpt-5-mini", {"tokens": 5}), JobLimits)


def test_time_counts_from_where_it_was_last_counted() -> None:
    job = record(clock=100.0)
    job.count_time(101.5)
    job.clock = 500.0  # the job waited for a person
    job.count_time(502.0)
    job.count_time(400.0)  # clocks may be set back
    assert (job.seconds, job.phase_seconds) == (3.5, 3.5)
    job.begin_phase()
    job.count_time(401.0)
    assert (job.seconds, job.phase_seconds) == (4.5, 1.0)


def test_what_stands_is_told_for_the_limits_that_are_set() -> None:
    limits = budget.limits_with_usage(spending("job", cost=2, tokens=5000))
    assert limits == {
        "job": {
            "tokens": LimitUse(limit=5000, spent=1000),
            "cost": LimitUse(limit=2, spent=1.97),
        },
        "phase": {},
    }


@pytest.mark.parametrize(
    "phase", [Budget(), Budget(model_calls=None), Budget(model_calls=500), Budget(cost=2)]
)
def test_limits_and_what_was_used_are_carried_over_continue_as_new(phase: Budget) -> None:
    job = record(limits=JobLimits(job=Budget(cost=2), phase=phase, price=PRICE), clock=5.0)
    job.add_usage(USED)
    job.count_time(7.5)
    carried = job.model_dump(mode="json", exclude_defaults=True)
    again = JobRecord.model_validate(json.loads(json.dumps(carried)))
    assert again.limits == job.limits
    assert budget.limits_with_usage(again) == budget.limits_with_usage(job)
    assert (again.phase_usage, again.clock) == (job.phase_usage, job.clock)


def test_what_a_reviewer_may_use_is_reserved_until_it_has_decided() -> None:
    job = record(review=Review())
    assert reservations.next_call_reservation(job) == reservations.review_call_reservation(job)
    job.review = Review(verdict="accepted")
    assert reservations.next_call_reservation(job) == TOOL_CALL


def test_the_model_is_told_when_little_is_left() -> None:
    limits = JobLimits(job=Budget(model_calls=10, cost=2.0), phase=Budget(model_calls=500))
    assert (
        budget.limits_running_low(record(limits=limits, usage=Usage(model_calls=8, cost=0.5))) == ""
    )
    low = budget.limits_running_low(record(limits=limits, usage=Usage(model_calls=9, cost=1.9)))
    assert low == (
        "Left are 1 of 10 model calls of the job, 0.10 of 2.00 cost of the job: "
        "finish what matters most."
    )
