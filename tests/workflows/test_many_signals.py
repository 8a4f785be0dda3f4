"""Thousands of signals that come while no worker runs are handled in bounded tasks."""

import asyncio
import itertools
import re
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.exceptions import CancelledError

from activities.checkpoints import Root
from tests.soak import SOAK, soak
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.short import Short, job
from workflows.runtime.inbox import FULL, MAX_SIGNALS

MANY = 2000
LONG = "Use metric units. " * 200
KINDS: dict[str, tuple[Any, ...]] = {
    "light": (("limit", {"cost": 20}), ("resume", {}), ("rewnid", "again")),
    "told": (("tell", {"text": LONG}),),
    "mixed": (
        ("tell", {"text": "Use metric units."}),
        ("bypass", {"guard": "none", "reason": LONG}),
        ("rewind", {"issue": LONG, "phase": 70}),
        ("answer", {"text": LONG}),
        ("resume", {"set": {"model.name": "x", "nonsense": 1}}),
    ),
}


async def _sent_without_worker(
    temporal: Client, queue: str, kinds: tuple[Any, ...], number: int
) -> WorkflowHandle[Any, Any]:
    handle = await temporal.start_workflow("Job", job(), id=f"{queue}-1", task_queue=queue)
    signals = itertools.islice(itertools.cycle(kinds), number)
    at_once = asyncio.Semaphore(20)

    async def send(name: str, payload: Any) -> None:
        async with at_once:
            await handle.signal(name, payload)

    await asyncio.gather(*(send(name, payload) for name, payload in signals))
    return handle


async def _failed_tasks(temporal: Client, handle: WorkflowHandle[Any, Any]) -> list[str]:
    """Return the failures of the first run, which handles the signals."""
    first = temporal.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
    return [
        str(event)
        async for event in first.fetch_history_events()
        if event.WhichOneof("attributes")
        in ("workflow_task_failed_event_attributes", "workflow_task_timed_out_event_attributes")
        and "UNHANDLED_COMMAND" not in str(event)
    ]


@pytest.mark.parametrize("kind", soak(["told"], list(KINDS)))
async def test_a_cancel_behind_thousands_of_signals_ends_the_job(
    temporal: Client, root: Root, kind: str
) -> None:
    queue = f"cancelled-{kind}"
    handle = await _sent_without_worker(temporal, queue, KINDS[kind], MANY)
    await handle.signal("cancel", {"reason": "enough"})
    async with serving(temporal, root, Short(), queue=queue):
        with pytest.raises(WorkflowFailureError) as ended:
            await asyncio.wait_for(handle.result(), 30)
        assert isinstance(ended.value.cause, CancelledError)
        assert not await _failed_tasks(temporal, handle)


async def _completed_behind(temporal: Client, root: Root, kind: str) -> dict[str, Any]:
    """Return the status of a job that completed although thousands of signals came first."""
    handle = await _sent_without_worker(temporal, kind, KINDS[kind], MANY)
    async with serving(temporal, root, Short(), queue=kind) as jobs:
        assert (await jobs.result(handle, 60))["status"] == "completed"
        assert not await _failed_tasks(temporal, handle)
        return await query_status(handle)


@pytest.mark.skipif(not SOAK, reason="in make soak")
async def test_thousands_of_remarks_are_read_as_far_as_they_are_taken(
    temporal: Client, root: Root
) -> None:
    await _completed_behind(temporal, root, "told")


async def test_thousands_of_light_signals_are_handled_in_several_tasks(
    temporal: Client, root: Root
) -> None:
    status = await _completed_behind(temporal, root, "light")
    assert status["refusals"] >= MANY - MAX_SIGNALS
    [left_out] = [line for line in status["notices"] if line.startswith(FULL)]
    assert re.fullmatch(r"(\d+ (limit|resume|rewnid)(, )?){3}", left_out.removeprefix(FULL))
