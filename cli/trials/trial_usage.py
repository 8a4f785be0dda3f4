"""What the runs of a trial used, asked of their jobs."""

import asyncio
from contextlib import suppress

from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

from cli.jobs.job_view import JobView
from protocol.status import TrialStatus
from protocol.trial_status import TrialRun
from protocol.usage import Usage

MOST_QUERIES = 8
"""Queries at the same time."""


async def fill_trial_usages(client: Client, runs: list[TrialRun]) -> None:
    """Ask the jobs what they used that the trial does not know; needs a worker."""
    slots = asyncio.Semaphore(MOST_QUERIES)

    async def fill_usage(run: TrialRun) -> None:
        async with slots:
            run.usage = await _query_run_usage(client, run.job)

    await asyncio.gather(
        *(
            fill_usage(run)
            for run in runs
            if run.usage is None and run.status not in ("pending", "unstarted")
        )
    )


async def _query_run_usage(client: Client, job: str) -> Usage | None:
    """Return what a job used; None if nobody can say any more."""
    with suppress(RPCError, WorkflowQueryFailedError):
        usage = (await client.get_workflow_handle(job).query("status")).get("usage") or {}
        return Usage.model_validate(usage, extra="ignore")
    return None


async def with_trial_usages(client: Client, job_view: JobView) -> JobView:
    """Return the view; of a trial, with what its runs used as far as they can say."""
    if isinstance(job_view.status, TrialStatus) and job_view.live:
        await fill_trial_usages(client, job_view.status.runs)
    return job_view
