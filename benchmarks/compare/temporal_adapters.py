"""Shared by the runners on Temporal: the server, the wait for the end, and the history."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.client import Client, Plugin, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.service import RPCError

from benchmarks.actions import settled_action_counts
from benchmarks.compare.adapter_task import (
    AdapterTask,
    Outcome,
    current_adapter_task,
    failed_adapter_outcome,
)
from benchmarks.compare.scenario_tools import log_scenario_event
from benchmarks.histories import workflow_histories
from engine.development import development_server
from engine.free_ports import free_port

R = TypeVar("R")
QUEUE = "compare"
WORKFLOW = "run"
FAILING = 5
"""Seconds of failing workflow tasks after which a run is given up."""


@dataclass(frozen=True)
class AdapterServer:
    """A server of its own for one run."""

    client: Client
    metrics_port: int


@asynccontextmanager
async def serve_temporal_for_adapter(
    plugins: Sequence[Plugin] = (), connect: Callable[..., Awaitable[Client]] = Client.connect
) -> AsyncIterator[AdapterServer]:
    """Yield a client with these plugins, of a server that counts Actions or of the scenario's."""
    given = {"plugins": plugins} if plugins else {}
    if address := current_adapter_task().address:
        yield AdapterServer(await connect(address, **given), 0)
        return
    port = free_port()
    async with development_server(ui=False, metrics_port=port) as running:
        yield AdapterServer(await connect(running.address, **given), port)


async def start_adapter_workflow(
    server: AdapterServer, run: Any, *arguments: Any
) -> WorkflowHandle[Any, Any]:
    """Start the workflow, unless a scenario's earlier process did."""
    handle: WorkflowHandle[Any, Any] = await server.client.start_workflow(
        run,
        args=arguments,
        id=WORKFLOW,
        task_queue=QUEUE,
        id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
    )
    if current_adapter_task().scenario:
        log_scenario_event("up")
    return handle


def change_adapter_loop() -> None:
    """Do what version B of a workflow does before its agent's loop."""
    if current_adapter_task().changed == "loop":
        workflow.upsert_memo({"version": "B"})


async def adapter_workflow_outcome(
    server: AdapterServer, handle: WorkflowHandle[Any, Any], task: AdapterTask, model: str
) -> Outcome:
    """Wait for the workflow's end and return its outcome.

    Args:
        task: Has the time limit.
        model: Type of the activity that calls the model, or a part of it.
    """
    outcome = Outcome("finished")
    try:
        async with asyncio.timeout(task.cap):
            await (outlast_server(handle.result) if task.scenario else _await_ending(handle))
    except TaskFails as error:
        outcome = Outcome("stopped", f"{await adapter_workflow_task_failure(handle)}{error}")
        await handle.terminate()
    except TimeoutError:
        outcome = Outcome("time")
        await handle.terminate()
    except WorkflowFailureError as error:
        outcome = failed_adapter_outcome(error)
    if task.scenario:
        return outcome
    actions = (await settled_action_counts(server.metrics_port)).total()
    recorded, runs = await measure_adapter_history(server.client, handle.id, model)
    return replace(outcome, recorded=recorded, runs=runs, actions=actions)


async def outlast_server(wait: Callable[[], Awaitable[R]]) -> R:
    """Wait for a workflow's end, also while its server is away."""
    while True:
        try:
            return await wait()
        except RPCError:
            await asyncio.sleep(1)


class TaskFails(Exception):
    """The workflow has not ended, but its task fails and is retried for ever."""


async def _await_ending(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait for the result. Raises TaskFails."""
    waiting = asyncio.ensure_future(handle.result())
    failing = 0
    try:
        while not (await asyncio.wait([waiting], timeout=1.0))[0]:
            described = (await handle.describe()).raw_description
            failing = failing + 1 if described.pending_workflow_task.attempt > 1 else 0
            if failing > FAILING:
                raise TaskFails(" (its workflow task is tried again for ever)")
        await waiting
    finally:
        waiting.cancel()


async def adapter_workflow_task_failure(handle: WorkflowHandle[Any, Any]) -> str:
    """Return type and text of the error in the last failed workflow task."""
    for event in reversed((await handle.fetch_history()).events):
        failure = event.workflow_task_failed_event_attributes.failure
        if failure.message:
            return f"{failure.application_failure_info.type}: {failure.message[:200]}"
    return "unknown"


async def measure_adapter_history(
    client: Client, workflow: str, model: str
) -> tuple[list[tuple[int, int]], int]:
    """Return bytes of history by model calls over all runs of the chain, and the number of runs."""
    runs = await workflow_histories(client, workflow)
    recorded: list[tuple[int, int]] = []
    size = 0
    for events in runs:
        for event in events:
            if model in event.activity_task_scheduled_event_attributes.activity_type.name:
                recorded.append((len(recorded), size))
            size += event.ByteSize()
    return [*recorded, (len(recorded), size)], len(runs)
