"""Watches the runs of a trial: which of them wait for a person."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

from temporalio import activity
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

from activities.runtime.activity_info import activity_job_id
from activities.steps.root_activity import async_step, end_with_workflow
from protocol.trial_status import TrialRun, WatchTrialReply

LOOK_SECONDS = 0.5
"""Between two looks, at least."""
RUN_SECONDS = 0.05
"""More for each run at work, since a worker has to answer for each."""
ANSWER = timedelta(seconds=5)
MOST_QUERIES = 8


@activity.defn
async def watch_trial() -> WatchTrialReply:
    """Return once a run waits or goes on and the trial does not know it; changes nothing."""
    async with async_step():
        with end_with_workflow():
            return await _watch_trial_news()


async def _watch_trial_news() -> WatchTrialReply:
    client, slots = activity.client(), asyncio.Semaphore(MOST_QUERIES)
    while True:
        trial = await _query_status(client, activity_job_id(), slots) or {}
        runs = [TrialRun.model_validate(run) for run in trial.get("runs") or []]
        running = [run for run in runs if run.status == "running"]
        waits = await asyncio.gather(*(_find_wait(client, run, slots) for run in running))
        if waits != [run.waiting for run in running]:
            jobs = (run.job for run in running)
            return WatchTrialReply(
                waiting={job: wait for job, wait in zip(jobs, waits, strict=True) if wait}
            )
        await asyncio.sleep(LOOK_SECONDS + RUN_SECONDS * len(running))


async def _find_wait(client: Client, run: TrialRun, slots: asyncio.Semaphore) -> str:
    """Return why a run waits for a person, or nothing; as the trial knows it if it is silent."""
    if (status := await _query_status(client, run.job, slots)) is None:
        return run.waiting
    waiting = status.get("waiting") or {}
    return "" if waiting.get("trying") else str(waiting.get("reason") or "")


async def _query_status(
    client: Client, workflow_id: str, slots: asyncio.Semaphore
) -> dict[str, Any] | None:
    async with slots:
        with suppress(RPCError, WorkflowQueryFailedError):
            answer = await client.get_workflow_handle(workflow_id).query(
                "status", result_type=dict[str, Any], rpc_timeout=ANSWER
            )
            return answer if isinstance(answer, dict) else None
    return None
