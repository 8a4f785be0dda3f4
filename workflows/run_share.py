"""A run's share of the limits of its trial, as the run sees it."""

from __future__ import annotations

from temporalio import workflow

from protocol.job_record import JobRecord
from protocol.limits import Budget, TrialShare
from workflows import budget, reservations


def take_share(job: JobRecord, limits: Budget) -> None:
    """Replace the job's share; nothing happens if it is no run of a trial."""
    if job.share:
        job.share = TrialShare(trial=job.share.trial, limits=limits)


def covers_needs(job: JobRecord) -> bool:
    """Whether the job waits for a share that it has received meanwhile."""
    if job.waiting is None or job.waiting.reason != "share" or job.share is None:
        return False
    limits = {key: getattr(job.share.limits, key) for key in job.waiting.needs}
    return all(
        limits[key] is None or needed <= limits[key] for key, needed in job.waiting.needs.items()
    )


async def wait_for_share(job: JobRecord, reservation: reservations.Reservation) -> None:
    """Wait within a step until the share has room for a call that could also be left out.

    A job leaves such a call out if its own limits have no room. What other runs of a trial use must
    not change a run.
    """
    if budget.exceeded_limit(job, reservation):
        return
    before = job.waiting
    try:
        while waiting := budget.share_wait(job, reservation):
            job.waiting = waiting
            await workflow.wait_condition(lambda: covers_needs(job))
    finally:
        job.waiting = before
