"""What replies that broke off have used, if the activity that asked for them has failed."""

from __future__ import annotations

from protocol.job_record import JobRecord
from protocol.usage import Usage
from workflows.activity_failures import StepFailed


def count_unfinished_replies(job: JobRecord, failed: StepFailed) -> None:
    """Add to a job's usage what a failure says of such replies, at the highest prices.

    Whoever catches a failure counts them, whether or not it goes on: they count once.
    """
    used, failed.unfinished = failed.unfinished, Usage()
    if price := job.limits.price:
        used = used.with_cost(price.max_cost(used.prompt_tokens, used.completion_tokens))
    job.add_usage(used)
