"""A start that is disturbed before there is a job."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from temporalio import activity
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import CancelledError

from activities.failures import failure
from activities.heartbeats import heartbeats
from engine.service import build_worker
from protocol.starting import Prepared, PrepareRequest


async def test_one_whose_attempt_fails_while_it_is_cancelled_ends_as_cancelled(
    temporal: Client,
) -> None:
    begun = asyncio.Event()

    @activity.defn(name="prepare")
    async def prepare(request: PrepareRequest) -> Prepared:
        begun.set()
        async with heartbeats():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        raise failure("Dependency", "The MCP server tea cannot be reached.")

    async with build_worker(temporal, task_queue="disturbed", activities=[prepare]):
        start = {"agent": "generalist", "instructions": "Make tea."}
        handle = await temporal.start_workflow("Job", start, id="disturbed", task_queue="disturbed")
        await begun.wait()
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(handle.result(), 30)
    assert isinstance(caught.value.cause, CancelledError)
