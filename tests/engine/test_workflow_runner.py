"""Workflow code runs so that it can be replayed, also after a kill."""

import asyncio
import multiprocessing
import uuid

import pytest
from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowHistory,
    WorkflowQueryFailedError,
)
from temporalio.worker import Replayer, Worker

from engine.development import DevelopmentServer
from engine.setup_errors import TOO_EARLY
from engine.workflow_runner import JobWorkflowRunner
from tests.engine import resting
from tests.engine.resting import Resting


@activity.defn
async def rest() -> None:
    activity.raise_complete_async()


async def test_a_run_replays_also_when_a_query_came_with_events_before_their_task(
    running: DevelopmentServer,
) -> None:
    # On a busy machine the query may arrive too late to be early.
    for _ in range(3):
        history, answer = await queried_after_a_kill(running)
        await Replayer(workflows=[Resting], workflow_runner=JobWorkflowRunner()).replay_workflow(
            history
        )
        if answer == TOO_EARLY:
            return
    pytest.fail(f"the query was answered: {answer!r}")


async def queried_after_a_kill(running: DevelopmentServer) -> tuple[WorkflowHistory, str]:
    """Return a run whose worker was killed, and the next worker's answer to a query before a
    signal.
    """
    client, queue = running.client, uuid.uuid4().hex
    served = multiprocessing.get_context("spawn").Process(
        target=resting.serve, args=(running.address, queue)
    )
    served.start()
    async with Worker(client, task_queue=f"{queue}-activities", activities=[rest]):
        handle = await client.start_workflow(
            Resting.run, f"{queue}-activities", id=queue, task_queue=queue
        )
        await scheduled(client, queue)
        served.kill()
        served.join()
        async with resting.worker(client, queue):
            query = asyncio.create_task(handle.query(Resting.status))
            # Half of the time that the query waits for the dead worker; after that, the task waits.
            await asyncio.sleep(resting.STICKY.total_seconds() / 2)
            await client.get_async_activity_handle(
                workflow_id=queue, run_id=handle.first_execution_run_id, activity_id="rest"
            ).complete()
            try:
                answer = await query
            except WorkflowQueryFailedError as refused:
                answer = str(refused)
            await handle.signal(Resting.go)
            await handle.result()
            return await handle.fetch_history(), answer


async def scheduled(client: Client, job: str) -> None:
    """Return once the worker has done its first task and the activity is waiting."""
    while True:
        found = await client.get_workflow_handle(job).describe()
        if any(each.attempt for each in found.raw_description.pending_activities):
            return
        await asyncio.sleep(0.05)
