"""Finds jobs whose workflow task fails repeatedly, and why."""

from __future__ import annotations

import asyncio

from temporalio.client import Client
from temporalio.service import RPCError

from cli.jobs.job_view import JOB, PROJECT, job_failure_message
from cli.jobs.recent_events import newest_events
from protocol.short_text import one_line

MOST_JOBS = 500
"""Running jobs that are examined."""


async def failing_jobs(client: Client) -> tuple[list[str], int]:
    """Return a text for each failing job, and how many running jobs were examined."""
    query = f"WorkflowType IN ('{JOB}', '{PROJECT}') AND ExecutionStatus = 'Running'"
    jobs: list[str] = []
    async for job in client.list_workflows(query, limit=MOST_JOBS):
        jobs.append(job.id)  # noqa: PERF401 - an async comprehension hides that this is paged
    several = asyncio.Semaphore(20)

    async def describe_if_failing(job_id: str) -> str | None:
        async with several:
            try:
                description = await client.get_workflow_handle(job_id).describe()
            except RPCError:
                return None
        attempt = description.raw_description.pending_workflow_task.attempt
        return (
            f"{job_id} (attempt {attempt}: {await _task_failure_reason(client, job_id)})"
            if attempt > 1
            else None
        )

    texts = await asyncio.gather(*map(describe_if_failing, jobs))
    return [text for text in texts if text], len(jobs)


async def _task_failure_reason(client: Client, job_id: str) -> str:
    for event in await newest_events(client, job_id, 20):
        if event.HasField("workflow_task_failed_event_attributes"):
            failure = event.workflow_task_failed_event_attributes.failure
            why = job_failure_message(await client.data_converter.decode_failure(failure))
            return one_line(why, 200)
    return "it timed out"
