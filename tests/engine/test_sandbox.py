"""The sandbox: modules are imported once, and what it forbids stays forbidden."""

from __future__ import annotations

import asyncio
import sys
import uuid

import pytest
from temporalio.client import WorkflowFailureError
from temporalio.worker import Worker

from engine import sandbox
from engine.development import Server
from tests.engine.reading import Reading


async def test_every_run_is_kept_from_the_clock_in_modules_that_were_imported_once(
    running: Server,
) -> None:
    queue = uuid.uuid4().hex
    async with Worker(
        running.client,
        task_queue=queue,
        workflows=[Reading],
        workflow_runner=sandbox.runner(),
        workflow_failure_exception_types=[Exception],
    ):

        async def told(number: int) -> str:
            with pytest.raises(WorkflowFailureError) as failed:
                await running.client.execute_workflow(
                    Reading.run, id=f"{queue}-{number}", task_queue=queue
                )
            return str(failed.value.cause)

        for what in await asyncio.gather(*map(told, range(20))):
            assert "Cannot access time.time" in what
    modules = sandbox._imported[Reading.__module__].modules
    assert modules["tests.engine.clocked"] is not sys.modules["tests.engine.clocked"]
