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


async def with_trial_usages(client: Client, job_view: JobView) -> JobView:
    """Return the view; of a trial, with what the jobs of its runs say that they used.

    The trial itself knows only the use of completed runs. It needs a worker.
    """
    status, slots = job_view.status, asyncio.Semaphore(MOST_QUERIES)
    if not isinstance(status, TrialStatus) or not job_view.live:
        return job_view

    async def fill_usage(run: TrialRun) -> None:
        async with slots:
            run.usage = await _query_run_usage(client, run.job)

    begun = [run for run in status.runs if run.status not in ("pending", "unstarted")]
    await asyncio.gather(*(fill_usage(run) for run in begun if run.usage is None))
    return job_view


async def _query_run_usage(client: Client, job: str) -> Usage | None:
    """Return what a job used; None if nobody can say any more."""
    with suppress(RPCError, WorkflowQueryFailedError):
        usage = (await client.get_workflow_handle(job).query("status")).get("usage") or {}
        return Usage.model_validate(usage, extra="ignore")
    return None
