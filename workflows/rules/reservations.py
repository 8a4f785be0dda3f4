"""What a call may use at most, reserved before it begins. Pure functions."""

from dataclasses import dataclass, replace

from protocol.endings import MAX_LOOK_UPS
from protocol.helpers import MAX_HELPER_CALLS, Helper
from protocol.job_record import JobRecord
from protocol.usage import Price
from workflows.rules.compaction import is_compaction_due

SUMMARY_TOKENS = 20_000
"""Estimated most tokens sent for a phase's archive summary."""
JUDGE_TOKENS = 30_000
"""Estimated most tokens sent to a judge."""
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
    return compaction_reservation(job) if is_compaction_due(job) else model_reply_reservation(job)


def review_call_reservation(job: JobRecord) -> Reservation:
    """Reserve for the reviewer's next reply and its look-ups."""
    prompt = max(job.review.context if job.review else 0, REVIEW_TOKENS)
    reservation = model_call_reservation(prompt, job.limits.output_tokens, job.limits.price)
    looks = job.limits.review is not None and job.limits.review.calls > 1
    return replace(reservation, tool_calls=MAX_LOOK_UPS if looks else 1)


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


def judge_call_reservation(job: JobRecord) -> Reservation:
    """Reserve for the judge's answer."""
    return model_call_reservation(JUDGE_TOKENS, job.limits.output_tokens, job.limits.price)


def summary_call_reservation(job: JobRecord) -> Reservation:
    """Reserve for the summary of the ending phase."""
    prompt = min(job.context, SUMMARY_TOKENS)
    return model_call_reservation(prompt, job.limits.output_tokens, job.limits.price)


def reflection_reservation(job: JobRecord) -> Reservation:
    """Reserve for the two questions of a reflection, each of which may be asked twice."""
    call = summary_call_reservation(job)
    return Reservation(model_calls=4, tokens=4 * call.tokens, cost=4 * call.cost)


def compaction_reservation(job: JobRecord) -> Reservation:
    """Reserve for a summary of the older conversation, which may be requested twice."""
    call = model_call_reservation(job.context, job.limits.output_tokens, job.limits.price)
    return Reservation(model_calls=2, tokens=2 * call.tokens, cost=2 * call.cost)
