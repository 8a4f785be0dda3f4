"""Limits on what a job and its phases use: whether a call has room, and how much is left.

Pure functions. No call begins whose reservation (`workflows.rules.reservations`) could exceed a
limit. Afterwards its actual use counts.
"""

from dataclasses import dataclass
from typing import Any, Literal

from protocol.helpers import Helper
from protocol.job_record import JobRecord
from protocol.limits import Budget, JobLimits
from protocol.short_text import shell_quoted
from protocol.status import Limits, LimitUse
from protocol.usage import Usage
from protocol.waiting import WaitState
from workflows.rules.reservations import (
    Reservation,
    helper_call_reservation,
    helpers_needing_budget,
)

LimitScope = Literal["job", "phase"]
KEYS = tuple(Budget.model_fields)
LOW = 0.2
"""Share of a limit below which the model is shown the rest."""


def helpers_within_budget(job: JobRecord) -> list[Helper]:
    """Return as many of the open helpers as the limits have room for."""
    helpers = helpers_needing_budget(job)
    while helpers and room_wait(job, helper_call_reservation(job, len(helpers)), ""):
        helpers.pop()
    return helpers


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

    def command(self, job_id: str) -> str:
        """Return the command that makes room."""
        name = self.key if self.scope == "job" else f"phase.{self.key}"
        enough = max(2 * self.limit, self.spent + self.needed)
        value = format_budget_amount(self.key, enough, up=True).replace(",", "")
        return f"starter.py limit {shell_quoted(job_id)} {name}={value}"

    def wait_state(self, job_id: str) -> WaitState:
        """Return how a job waits because of it."""
        command = self.command(job_id)
        return WaitState(
            reason="budget",
            message=self.message,
            remedy=f"Raise it with the signal limit, such as `{command}`, or cancel the job.",
            command=command,
            limit=self.key if self.scope == "job" else "",
        )


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


def room_wait(job: JobRecord, reservation: Reservation, job_id: str) -> WaitState | None:
    """Return how the job waits if a limit has no room for a call, else None."""
    over = exceeded_limit(job, reservation)
    return over.wait_state(job_id) if over else None


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


def limits_with_usage(job: JobRecord) -> Limits:
    """Return the limits that are set, with their use, for people and programs."""
    return {
        scope: {
            key: LimitUse(limit=limit, spent=spent.amount(key))
            for key in KEYS
            if (limit := getattr(budget, key)) is not None
        }
        for scope, budget, spent in limit_scopes(job)
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
