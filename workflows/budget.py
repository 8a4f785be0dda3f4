"""Limits: is there room for the next call? Reserved before a call, settled after it.

Pure functions. What a call may use is reserved in full, so that no call is begun that could pass
a limit; what it did use is what counts afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from protocol.endings import MAX_LOOK_UPS
from protocol.helpers import MAX_HELPER_CALLS, Helper
from protocol.limits import Budget, Price
from protocol.record import JobRecord, WaitState
from protocol.requests import Usage
from protocol.start import JobLimits
from workflows.activity_failures import shell_quoted

LimitScope = Literal["job", "phase"]
KEYS = tuple(Budget.model_fields)
SUMMARY_TOKENS = 20_000
"""The most that is sent for a phase's archive summary, about."""
JUDGE_TOKENS = 30_000
"""The most that a judge is sent, about."""
LOW = 0.2
"""Share of a limit below which the model learns what is left."""
REVIEW_TOKENS = 40_000
"""The most that a review begins with, about."""
HELPER_TOKENS = 10_000
"""The most that a helper begins with, about."""


@dataclass(frozen=True)
class Reservation:
    """The most that a call may use. Of time nothing is reserved: nobody knows."""

    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0


TOOL_CALL = Reservation(tool_calls=1)


def model_call(prompt: int, completion: int, price: Price | None) -> Reservation:
    """For a call that sends and receives at most so many tokens, at the dearest rates."""
    cost = price.max_cost(prompt, completion) if price else 0.0
    return Reservation(model_calls=1, tokens=prompt + completion, cost=cost)


def next_model_call(job: JobRecord) -> Reservation:
    """For the next reply of the running phase."""
    return model_call(job.context, job.limits.output_tokens, job.limits.price)


def next_call(job: JobRecord) -> Reservation:
    """For whatever the job does next."""
    if job.review and not job.review.verdict:
        return review_call(job)
    if job.judgement and not job.judgement.decided:
        return judge_call(job)
    if open_helpers(job):
        return helper_calls(job, 1)
    if job.review or job.next_call < len(job.calls):
        return TOOL_CALL
    return compaction_calls(job) if compaction_is_due(job) else next_model_call(job)


def review_call(job: JobRecord) -> Reservation:
    """For the next reply of the reviewer, and what it looks up."""
    prompt = max(job.review.context if job.review else 0, REVIEW_TOKENS)
    reservation = model_call(prompt, job.limits.output_tokens, job.limits.price)
    return replace(reservation, tool_calls=MAX_LOOK_UPS)


def open_helpers(job: JobRecord) -> list[Helper]:
    """Those that have not answered."""
    return [each for each in job.helpers if not each.done and each.call >= job.next_call]


def helper_calls(job: JobRecord, count: int) -> Reservation:
    """For a reply of each of the first so many open helpers, and what they look up."""
    calls = [
        model_call(max(helper.context, HELPER_TOKENS), job.limits.output_tokens, job.limits.price)
        for helper in open_helpers(job)[:count]
    ]
    return Reservation(
        model_calls=len(calls),
        tool_calls=MAX_HELPER_CALLS * len(calls),
        tokens=sum(call.tokens for call in calls),
        cost=sum(call.cost for call in calls),
    )


def helpers_with_room(job: JobRecord) -> list[Helper]:
    """As many of the open helpers as the limits have room for, the first ones."""
    helpers = open_helpers(job)
    while helpers and exceeded_limit(job, helper_calls(job, len(helpers))):
        helpers.pop()
    return helpers


def judge_call(job: JobRecord) -> Reservation:
    """For the judge's answer."""
    return model_call(JUDGE_TOKENS, job.limits.output_tokens, job.limits.price)


def summary_call(job: JobRecord) -> Reservation:
    """For the summary of the phase that ends."""
    prompt = min(job.context, SUMMARY_TOKENS)
    return model_call(prompt, job.limits.output_tokens, job.limits.price)


def reflection_calls(job: JobRecord) -> Reservation:
    """For the two questions of a reflection, each of which may be asked twice."""
    call = summary_call(job)
    return Reservation(model_calls=4, tokens=4 * call.tokens, cost=4 * call.cost)


def compaction_is_due(job: JobRecord) -> bool:
    """Whether the next request would be too large, and compacting again can make it smaller."""
    grown = job.context - job.compacted_context
    return job.context >= job.context_limit and grown > job.context_limit // 10


def compaction_calls(job: JobRecord) -> Reservation:
    """For a summary of the older conversation, which may be asked for twice."""
    call = model_call(job.context, job.limits.output_tokens, job.limits.price)
    return Reservation(model_calls=2, tokens=2 * call.tokens, cost=2 * call.cost)


@dataclass(frozen=True)
class Consumption:
    """What a job, or one of its phases, has used."""

    usage: Usage
    seconds: float

    def amount(self, key: str) -> float:
        """The figure that a limit of this key is held against."""
        if key == "tokens":
            return self.usage.prompt_tokens + self.usage.completion_tokens
        amount: float = self.seconds if key == "seconds" else getattr(self.usage, key)
        return amount


@dataclass(frozen=True)
class ExceededLimit:
    """A limit that the next call would pass."""

    scope: LimitScope
    key: str
    limit: float
    spent: float
    needed: float

    @property
    def message(self) -> str:
        """`The job's cost limit is 2.00; 1.97 are spent and the next call may cost 0.06.`"""
        limit, spent, needed = (
            format_amount(self.key, n) for n in (self.limit, self.spent, self.needed)
        )
        # A summary may be asked for twice: then there is room for a call, and not for the step.
        more = f" and the next step may make {needed}" if self.needed > 1 else ""
        sentences = {
            "model_calls": f"limit is {limit} model calls; {spent} are made{more}.",
            "tool_calls": f"limit is {limit} tool calls; {spent} are made{more}.",
            "tokens": f"limit is {limit} tokens; {spent} are used and the next call may use "
            f"{needed}.",
            "cost": f"cost limit is {limit}; {spent} are spent and the next call may cost "
            f"{needed}.",
            "seconds": f"limit is {limit} seconds; {spent} have passed.",
        }
        return f"The {self.scope}'s {sentences[self.key]}"

    def remedy(self, job_id: str) -> str:
        """What a person does about it."""
        name = self.key if self.scope == "job" else f"phase.{self.key}"
        enough = max(2 * self.limit, self.spent + self.needed)
        value = format_amount(self.key, enough, up=True).replace(",", "")
        return (
            f"Raise it with the signal limit, such as `starter.py limit {shell_quoted(job_id)} "
            f"{name}={value}`, or cancel the job."
        )

    def wait_state(self, job_id: str) -> WaitState:
        """How a job waits because of it."""
        return WaitState(reason="budget", message=self.message, remedy=self.remedy(job_id))


def exceeded_limit(job: JobRecord, reservation: Reservation) -> ExceededLimit | None:
    """The first limit that a call with this reservation would pass, the job's before the phase's.

    A limit may be reached exactly. A call passes only a limit on something that it uses.
    """
    for scope, budget, spent in limit_scopes(job):
        for key in KEYS:
            limit = getattr(budget, key)
            if limit is None:
                continue
            used, needed = spent.amount(key), getattr(reservation, key, 0)
            passed = used >= limit if key == "seconds" else round(used + needed, 9) > limit
            if passed and (needed or key == "seconds"):
                return ExceededLimit(scope, key, limit, used, needed)
    return None


def limit_scopes(job: JobRecord) -> list[tuple[LimitScope, Budget, Consumption]]:
    """The job's limits and those of its running phase, with what was used of them."""
    return [
        ("job", job.limits.job, Consumption(job.usage, job.seconds)),
        ("phase", job.limits.phase, Consumption(job.phase_usage, job.phase_seconds)),
    ]


def seconds_left(job: JobRecord) -> float:
    """How long the job may be at work until a limit is reached."""
    remaining = [
        budget.seconds - spent.seconds
        for _, budget, spent in limit_scopes(job)
        if budget.seconds is not None
    ]
    return max(0.001, min(remaining, default=float("inf")))


def running_low(job: JobRecord) -> str:
    """What is left of each limit of which less than a fifth is; empty where there is more."""
    low = [
        f"{format_amount(key, max(0, limit - used))} of {format_amount(key, limit)} "
        f"{key.replace('_', ' ')} "
        f"of the {scope}"
        for scope, budget, spent in limit_scopes(job)
        for key in KEYS
        if (limit := getattr(budget, key)) is not None
        and (used := spent.amount(key)) > limit * (1 - LOW)
    ]
    return f"Left are {', '.join(low)}: finish what matters most." if low else ""


@dataclass(frozen=True)
class Used:
    """A limit of which most is used."""

    name: str
    """As the signal `limit` takes it from the command line: `tokens`, `phase.tokens`."""
    key: str
    limit: float
    spent: float

    @property
    def share(self) -> int:
        """In per cent."""
        return int(100 * self.spent / self.limit)

    @property
    def figures(self) -> str:
        return f"{format_amount(self.key, self.spent)} of {format_amount(self.key, self.limit)}"

    @property
    def raised(self) -> str:
        """A limit that leaves room again."""
        return format_amount(self.key, 2 * self.limit, up=True).replace(",", "")


def mostly_used(scope: LimitScope, limits: Budget, spent: Consumption) -> list[Used]:
    """The limits of which no more than a fifth is left."""
    return [
        Used(key if scope == "job" else f"phase.{key}", key, limit, used)
        for key in KEYS
        if (limit := getattr(limits, key)) is not None
        and (used := spent.amount(key)) >= limit * (1 - LOW)
    ]


def nearly_used(job: JobRecord) -> list[Used]:
    """The limits of the job and of its phase that people should know of before they are reached."""
    return [used for scope in limit_scopes(job) for used in mostly_used(*scope)]


def limits_with_usage(job: JobRecord) -> dict[str, dict[str, dict[str, float]]]:
    """The limits that are set, each with what was used of it: for people and programs."""
    return {
        scope: {
            key: {"limit": limit, "spent": spent.amount(key)}
            for key in KEYS
            if (limit := getattr(budget, key)) is not None
        }
        for scope, budget, spent in limit_scopes(job)
    }


def with_model(limits: JobLimits, model: str, of_model: JobLimits) -> JobLimits | str:
    """The limits with another model, or why the job cannot have it.

    Args:
        limits: Those in force, of which people may have changed some.
        model: Its name.
        of_model: What the configuration comes to with it.
    """
    has_cost = limits.job.cost is not None or limits.phase.cost is not None
    if of_model.price is None and has_cost:
        return (
            f"the price of the model {model} is not known, so that the limit on cost could not be "
            f"kept; a job takes prices.{model} from the configuration when it starts"
        )
    keys = ("model_seconds", "output_tokens", "price", "context_tokens")
    return limits.model_copy(update={key: getattr(of_model, key) for key in keys})


def changed_limits(limits: JobLimits, model: str, payload: dict[str, Any]) -> JobLimits | str:
    """The limits after a signal `limit`, or why they stay as they are.

    Args:
        limits: Those in force.
        model: The job's model.
        payload: A checked payload: what was sent, and nothing else.
    """
    of_job = {key: value for key, value in payload.items() if key != "phase"}
    of_phase = payload.get("phase") or {}
    if limits.price is None and ("cost" in of_job or "cost" in of_phase):
        return (
            f"the price of the model {model} is not known, so that its cost cannot be limited; "
            f"a job takes prices.{model} from the configuration when it starts"
        )
    return limits.model_copy(
        update={
            "job": limits.job.model_copy(update=of_job),
            "phase": limits.phase.model_copy(update=of_phase),
        }
    )


def format_amount(key: str, value: float, *, up: bool = False) -> str:
    """A figure for people: money with two decimals, or more where it is small."""
    if key != "cost":
        return f"{int(value) + (up and value > int(value)):,}"
    decimals = 2 if value >= 1 else 6
    if up and round(value, decimals) < value:
        value += 10.0**-decimals
    text = f"{value:,.{decimals}f}"
    integer, _, fraction = text.partition(".")
    return f"{integer}.{fraction.rstrip('0').ljust(2, '0')}"
