"""A workflow that waits for an activity or a signal, and a process that serves it."""

import asyncio
from datetime import timedelta

from temporalio import workflow
from temporalio.client import Client
from temporalio.worker import Worker

from engine.workflow_runner import JobWorkflowRunner

STICKY = timedelta(seconds=2)
"""How long a query or a workflow task waits for the worker that had the previous task."""


@workflow.defn
class Resting:
    def __init__(self) -> None:
        self.signalled = False
        self.woken_by = ""

    @workflow.signal
    def go(self) -> None:
        self.signalled = True

    @workflow.query
    def status(self) -> str:
        return self.woken_by

    @workflow.run
    async def run(self, activities: str) -> str:
        rest = workflow.start_activity(
            "rest",
            activity_id="rest",
            task_queue=activities,
            start_to_close_timeout=timedelta(minutes=1),
        )
        await workflow.wait_condition(lambda: rest.done() or self.signalled)
        self.woken_by = "signal" if self.signalled else "activity"
        # Two commands, so that this replay is not confused with one that the other event woke.
        if self.signalled:
            await workflow.sleep(0.01)
        await rest
        await workflow.wait_condition(lambda: self.signalled)
        return self.woken_by


def worker(client: Client, queue: str) -> Worker:
    return Worker(
        client,
        task_queue=queue,
        workflows=[Resting],
        workflow_runner=JobWorkflowRunner(),
        sticky_queue_schedule_to_start_timeout=STICKY,
    )


def serve(address: str, queue: str) -> None:
    """Serve until the process is killed."""

    async def run() -> None:
        await worker(await Client.connect(address), queue).run()

    asyncio.run(run())
