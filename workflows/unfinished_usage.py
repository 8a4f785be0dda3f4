"""What replies that broke off have used, if the activity that asked for them has failed or was
given up.
"""

from __future__ import annotations

from collections.abc import Mapping

from protocol.job_record import JobRecord
from protocol.usage import Usage
from workflows.activity_calls import ActivityCalls
from workflows.activity_failures import StepFailed


def count_unfinished_replies(job: JobRecord, failed: StepFailed) -> None:
    """Add to a job's usage what a failure says of such replies, at the highest prices.

    Whoever catches a failure counts them, whether or not it goes on: they count once.
    """
    used, failed.unfinished = failed.unfinished, Usage()
    _add_unfinished_usage(job, used)


def count_given_up_replies(
    job: JobRecord, calls: ActivityCalls, retried: Mapping[str, Usage]
) -> None:
    """Add to a job's usage what replies have used whose calls were given up, at the highest prices.

    Args:
        retried: What failed attempts have used, by the id of their activity. It counts for a call
            of which no attempt was in flight, to say what all of them have used.
    """
    for activity_id, used in calls.given_up.items():
        _add_unfinished_usage(job, used if used != Usage() else retried.get(activity_id, used))
    calls.given_up = {}


def _add_unfinished_usage(job: JobRecord, used: Usage) -> None:
    if price := job.limits.price:
        used = used.with_cost(price.max_cost(used.prompt_tokens, used.completion_tokens))
    job.add_usage(used)
