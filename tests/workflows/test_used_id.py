"""A second start under a used id, as other clients of Temporal allow it."""

import asyncio

import pytest
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import WorkflowIDReusePolicy

from activities.checkpoints import Root
from benchmarks.zero_cost import ZeroCost
from cli.commands.look_commands import list_jobs
from cli.jobs.job_memo import JOB
from cli.jobs.job_view import view_job
from engine.deployment import worker_build_id
from tests.brief import BRIEFEST
from tests.workflows.serving import serving

START = {"agent": "generalist", "instructions": "Keep a log.", "set": BRIEFEST}


async def listed_statuses(client: Client, job_id: str) -> list[str]:
    # Other tests have jobs on the same server.
    rows, _ = await list_jobs(client, 1_000)
    return [row["status"] for row in rows if row["job_id"] == job_id]


async def test_a_refused_second_start_does_not_hide_the_job(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, ZeroCost(steps=2, todos=1)) as jobs:
        handle = await jobs.start(START)
        assert (await jobs.result(handle))["status"] == "completed"
        again = await temporal.start_workflow(
            JOB, START, id=handle.id, task_queue=jobs.queue,
            id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE,
        )  # fmt: skip
        with pytest.raises(WorkflowFailureError):
            await again.result()
        view = await view_job(temporal, handle.id)
        # Temporal's list of jobs lags behind.
        async with asyncio.timeout(30):
            while await listed_statuses(temporal, handle.id) != ["completed"]:  # noqa: ASYNC110 - it reads
                await asyncio.sleep(0.1)
    assert view.status.status == "completed"
    assert view.version == worker_build_id()
    assert view.run_id != again.result_run_id
