"""Limits: reserve room for a call before it, settle its use afterwards.

Pure functions. The most that a call may use is reserved, so no call begins that could exceed a
limit. Afterwards its actual use counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

from protocol.call_price import Price
from protocol.endings import MAX_LOOK_UPS
from protocol.helpers import MAX_HELPER_CALLS, Helper
from protocol.job_record import JobRecord
from protocol.limits import Budget, JobLimits
from protocol.short_text import shell_quoted
from protocol.usage import Usage
from protocol.waiting import WaitState

LimitScope = Literal["job", "phase"]
KEYS = tuple(Budget.model_fields)
SUMMARY_TOKENS = 20_000
"""Estimated most tokens sent for a phase's archive summary."""
JUDGE_TOKENS = 30_000
"""Estimated most tokens sent to a judge."""
LOW = 0.2
"""Share of a limit below which the model is shown the rest."""
REVIEW_TOKENS = 40_000
"""Estimated most tokens of a review's first request."""
HELPER_TOKENS = 10_000
"""Estimated most tokens of a helper's first request."""


@dataclass(frozen=True)
class Reservation:
    """The most that a call may use. No time is reserved, since it is unknown."""

    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: float = 0.0


TOOL_CALL = Reservation(tool_calls=1)


def model_call_reservation(prompt: int, completion: int, price: Price | None) -> Reservation:
    """Reserve for a call with at most so many tokens, at the highest prices."""
    cost = price.max_cost(prompt, completion) if price else 0.0
    return Reservation(model_calls=1, tokens=prompt + completion, cost=cost)


def model_reply_reservation(job: JobRecord) -> Reservation:
    """Reserve for the next reply of the running phase."""
    return model_call_reservation(job.context, job.limits.output_tokens, job.limits.price)


def next_call_reservation(job: JobRecord) -> Reservation:
    """Reserve for whatever the job does next."""
    if job.review and not job.review.verdict:
        return review_call_reservation(job)
    if job.judgement and not job.judgement.decided:
        return judge_call_reservation(job)
    if helpers_needing_budget(job):
        return helper_call_reservation(job, 1)
    if job.review or job.next_call < len(job.calls):
        return TOOL_CALL
    return (
        compaction_reservation(job) if is_over_context_budget(job) else model_reply_reservation(job)
    )


def review_call_reservation(job: JobRecord) -> Reservation:
    """Reserve for the reviewer's next reply and its look-ups."""
    prompt = max(job.review.context if job.review else 0, REVIEW_TOKENS)
    reservation = model_call_reservation(prompt, job.limits.output_tokens, job.limits.price)
    return replace(reservation, tool_calls=MAX_LOOK_UPS)


def helpers_needing_budget(job: JobRecord) -> list[Helper]:
    """Return the helpers that have not answered."""
    return [each for each in job.helpers if not each.done and each.call >= job.next_call]


def helper_call_reservation(job: JobRecord, count: int) -> Reservation:
    """Reserve for a reply of each of the first so many open helpers, with their look-ups."""
    calls = [
        model_call_reservation(
            max(helper.context, HELPER_TOKENS), job.limits.output_tokens, job.limits.price
        )
        for helper in helpers_needing_budget(job)[:count]
    ]
    return Reservation(
        model_calls=len(calls),
        tool_calls=MAX_HELPER_CALLS * len(calls),
        tokens=sum(call.tokens for call in calls),
        cost=sum(call.cost for call in calls),
    )


def helpers_within_budget(job: JobRecord) -> list[Helper]:
    """Return as many of the open helpers as the limits have room for."""
    helpers = helpers_needing_budget(job)
    while helpers and room_wait(job, helper_call_reservation(job, len(helpers)), ""):
        helpers.pop()
    return helpers


def judge_call_reservation(job: JobRecord) -> Reservation:
    """Reserve for the judge's answer."""
    return model_call_reservation(JUDGE_TOKENS, job.limits.output_tokens, job.limits.price)


def unfinished_usage(job: JobRecord, used: Usage) -> Usage:
    """Return what replies that broke off have used, at the highest prices."""
    if job.limits.price is None:
        return used
    cost = job.limits.price.max_cost(used.prompt_tokens, used.completion_tokens)
    return used.model_copy(update={"cost": cost})


def summary_call_reservation(job: JobRecord) -> Reservation:
    """Reserve for the summary of the ending phase."""
    prompt = min(job.context, SUMMARY_TOKENS)
    return model_call_reservation(prompt, job.limits.output_tokens, job.limits.price)


def reflection_reservation(job: JobRecord) -> Reservation:
    """Reserve for the two questions of a reflection, each of which may be asked twice."""
    call = summary_call_reservation(job)
    return Reservation(model_calls=4, tokens=4 * call.tokens, cost=4 * call.cost)


def is_over_context_budget(job: JobRecord) -> bool:
    """Whether the next request would be too large and compacting can make it smaller."""
    grown = job.context - job.compacted_context
    return job.context >= job.context_limit and grown > job.context_limit // 10


def compaction_reservation(job: JobRecord) -> Reservation:
    """Reserve for a summary of the older conversation, which may be requested twice."""
    call = model_call_reservation(job.context, job.limits.output_tokens, job.limits.price)
    return Reservation(model_calls=2, tokens=2 * call.tokens, cost=2 * call.cost)


@dataclass(frozen=True)
class Consumption:
    """The use of a job, or of one of its phases."""

    usage: Usage
    seconds: float

    def amount(self, key: str) -> float:
        """Return the amount that a limit with this key applies to."""
        if key == "tokens":
            return self.usage.prompt_tokens + self.usage.completion_tokens
        amount: float = self.seconds if key == "seconds" else getattr(self.usage, key)
        return amount


@dataclass(frozen=True)
class ExceededBudgetLimit:
    """A limit that the next call would exceed."""

    scope: LimitScope
    key: str
    limit: float
    spent: float
    needed: float

    @property
    def message(self) -> str:
        """Return `The job's cost limit is 2.00; 1.97 are spent and the next call may cost 0.06.`"""
        limit, spent, needed = (
            format_budget_amount(self.key, n) for n in (self.limit, self.spent, self.needed)
        )
        # A summary may be requested twice, so there can be room for the call but not for the step.
        more = f" and the next step may make {needed}" if self.needed > 1 else ""
        sentences = {
            "model_calls": f"{_call_limit_words('model', limit, spent)}{more}.",
            "tool_calls": f"{_call_limit_words('tool', limit, spent)}{more}.",
            "tokens": f"limit is {limit} tokens; {spent} are used and the next call may use "
            f"{needed}.",
            "cost": f"cost limit is {limit}; {spent} are spent and the next call may cost "
            f"{needed}.",
            "seconds": f"limit is {limit} seconds; {spent} have passed.",
        }
        return f"The {self.scope}'s {sentences[self.key]}"

    def remedy(self, job_id: str) -> str:
        """Return the command that a person can use."""
        name = self.key if self.scope == "job" else f"phase.{self.key}"
        enough = max(2 * self.limit, self.spent + self.needed)
        value = format_budget_amount(self.key, enough, up=True).replace(",", "")
        return (
            f"Raise it with the signal limit, such as `starter.py limit {shell_quoted(job_id)} "
            f"{name}={value}`, or cancel the job."
        )

    def wait_state(self, job_id: str) -> WaitState:
        """Return how a job waits because of it."""
        return WaitState(reason="budget", message=self.message, remedy=self.remedy(job_id))


def _call_limit_words(kind: str, limit: str, spent: str) -> str:
    """Return `limit is 1 model call; 1 is made`."""
    calls, are = "call" if limit == "1" else "calls", "is" if spent == "1" else "are"
    return f"limit is {limit} {kind} {calls}; {spent} {are} made"


def exceeded_limit(job: JobRecord, reservation: Reservation) -> ExceededBudgetLimit | None:
    """Return the first limit that a call with this reservation would exceed, the job's before the
    phase's.

    A limit may be reached exactly. A call exceeds only limits on what it uses.
    """
    for scope, budget, spent in limit_scopes(job):
        for key in KEYS:
            limit = getattr(budget, key)
            if limit is None:
                continue
            used, needed = spent.amount(key), getattr(reservation, key, 0)
            passed = used >= limit if key == "seconds" else round(used + needed, 9) > limit
            if passed and (needed or key == "seconds"):
                return ExceededBudgetLimit(scope, key, limit, used, needed)
    return None


def share_wait(job: JobRecord, reservation: Reservation) -> WaitState | None:
    """Return the wait of a trial's run whose share has no room for the call, else None."""
    if (share := job.share) is None:
        return None
    spent, needs = Consumption(job.usage, 0), {}
    for key in KEYS:
        limit, needed = getattr(share.limits, key), getattr(reservation, key, 0)
        total = round(spent.amount(key) + needed, 9)
        if limit is not None and needed and total > limit:
            needs[key] = float(total)
    if not needs:
        return None
    key = next(iter(needs))
    name = key.replace("_", " ")
    return WaitState(
        reason="share",
        message=f"The run's share of the trial's limit on {name} is "
        f"{format_budget_amount(key, getattr(share.limits, key))}; "
        f"its next call may need a share of {format_budget_amount(key, needs[key], up=True)}.",
        remedy="The trial gives it more as soon as other runs leave something, or else ends it; "
        f"`starter.py limit {shell_quoted(share.trial)} {key}=…` raises the trial's limit.",
        needs=needs,
    )


def room_wait(job: JobRecord, reservation: Reservation, job_id: str) -> WaitState | None:
    """Return how the job waits if a limit or its share has no room for a call, else None."""
    if over := exceeded_limit(job, reservation):
        return over.wait_state(job_id)
    return share_wait(job, reservation)


def limit_scopes(job: JobRecord) -> list[tuple[LimitScope, Budget, Consumption]]:
    """Return the limits of the job and of its running phase, each with its use."""
    return [
        ("job", job.limits.job, Consumption(job.usage, job.seconds)),
        ("phase", job.limits.phase, Consumption(job.phase_usage, job.phase_seconds)),
    ]


def budget_seconds_left(job: JobRecord) -> float:
    """Return how long the job may work until a limit is reached."""
    remaining = [
        budget.seconds - spent.seconds
        for _, budget, spent in limit_scopes(job)
        if budget.seconds is not None
    ]
    return max(0.001, min(remaining, default=float("inf")))


def limits_running_low(job: JobRecord) -> str:
    """Return the rest of each limit with less than a fifth left; empty if there is none."""
    low = [
        f"{format_budget_amount(key, max(0, limit - used))} of {format_budget_amount(key, limit)} "
        f"{key.replace('_', ' ')} "
        f"of the {scope}"
        for scope, budget, spent in limit_scopes(job)
        for key in KEYS
        if (limit := getattr(budget, key)) is not None
        and (used := spent.amount(key)) > limit * (1 - LOW)
    ]
    return f"Left are {', '.join(low)}: finish what matters most." if low else ""


@dataclass(frozen=True)
class BudgetUse:
    """A limit that is mostly used."""

    name: str
    """The key in the command `limit`: `tokens`, `phase.tokens`."""
    key: str
    limit: float
    spent: float

    @property
    def share(self) -> int:
        """Return the used share in per cent."""
        return int(100 * self.spent / self.limit)

    @property
    def figures(self) -> str:
        spent = format_budget_amount(self.key, self.spent)
        return f"{spent} of {format_budget_amount(self.key, self.limit)}"

    @property
    def raised(self) -> str:
        """A limit that has room again, as text for the command."""
        return format_budget_amount(self.key, 2 * self.limit, up=True).replace(",", "")


def mostly_used_limits(scope: LimitScope, limits: Budget, spent: Consumption) -> list[BudgetUse]:
    """Return the limits with at most a fifth left."""
    return [
        BudgetUse(key if scope == "job" else f"phase.{key}", key, limit, used)
        for key in KEYS
        if (limit := getattr(limits, key)) is not None
        and (used := spent.amount(key)) >= limit * (1 - LOW)
    ]


def nearly_used_limits(job: JobRecord) -> list[BudgetUse]:
    """Return the limits of job and phase that people should hear about before they are reached."""
    return [used for scope in limit_scopes(job) for used in mostly_used_limits(*scope)]


def limits_with_usage(job: JobRecord) -> dict[str, dict[str, dict[str, float]]]:
    """Return the limits that are set, with their use, for people and programs."""
    scopes: list[tuple[str, Budget, Consumption]] = [*limit_scopes(job)]
    if job.share:
        scopes.append(("trial", job.share.limits, Consumption(job.usage, 0)))
    return {
        scope: {
            key: {"limit": limit, "spent": spent.amount(key)}
            for key in KEYS
            if (limit := getattr(budget, key)) is not None
        }
        for scope, budget, spent in scopes
    }


def budget_limits_with_model(limits: JobLimits, model: str, of_model: JobLimits) -> JobLimits | str:
    """Return the limits with another model, or why the job cannot have it.

    Args:
        limits: The present limits, some of which people may have changed.
        model: The model's name.
        of_model: The configuration's limits with that model.
    """
    has_cost = limits.job.cost is not None or limits.phase.cost is not None
    if of_model.price is None and has_cost:
        return (
            f"the price of the model {model} is not known, so that the limit on cost could not be "
            f"kept; a job takes prices.{model} from the configuration when it starts"
        )
    keys = ("model_seconds", "output_tokens", "price", "context_tokens")
    return limits.model_copy(update={key: getattr(of_model, key) for key in keys})


def limits_after_signal(limits: JobLimits, model: str, payload: dict[str, Any]) -> JobLimits | str:
    """Return the limits after a signal `limit`, or why they stay unchanged.

    Args:
        limits: The present limits.
        model: The job's model.
        payload: The checked payload, with only the fields that were sent.
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


def format_budget_amount(key: str, value: float, *, up: bool = False) -> str:
    """Format an amount for people; money has two decimals, or more if it is small."""
    if key != "cost":
        return f"{int(value) + (up and value > int(value)):,}"
    decimals = 2 if value >= 1 else 6
    if up and round(value, decimals) < value:
        value += 10.0**-decimals
    text = f"{value:,.{decimals}f}"
    integer, _, fraction = text.partition(".")
    return f"{integer}.{fraction.rstrip('0').ljust(2, '0')}"
