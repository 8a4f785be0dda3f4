"""Runs of the bare engine, which a benchmark compares jobs with."""

from __future__ import annotations

import asyncio
import time
import uuid
from datetime import timedelta

from temporalio.client import Client
from temporalio.worker import Worker

from benchmarks.bare_engine import Bare, BareWaiting, Waiting, do_nothing, do_nothing_locally
from benchmarks.histories import HistorySteps, history_steps, workflow_histories
from engine.service import SLOTS


async def run_bare_waiting(
    temporal: Client, jobs: int, latency: float, window: float
) -> dict[str, float]:
    """Run the same number of bare workflows, whose regular activity takes `latency` seconds."""
    queue, model = f"bare-{uuid.uuid4().hex[:8]}", Waiting(latency)
    async with Worker(
        temporal,
        task_queue=queue,
        workflows=[BareWaiting],
        activities=[model.wait, do_nothing_locally],
        max_concurrent_activities=SLOTS,
        max_cached_workflows=SLOTS,
        graceful_shutdown_timeout=timedelta(seconds=1),
    ):
        for n in range(jobs):
            await temporal.start_workflow(
                BareWaiting.run, 1000, id=f"{queue}-{n}", task_queue=queue
            )
        while model.calls < 3 * jobs:  # noqa: ASYNC110 - it counts
            await asyncio.sleep(1)
        before = (time.monotonic(), model.calls, time.process_time())
        await asyncio.sleep(window)
        after = (time.monotonic(), model.calls, time.process_time())
    calls = after[1] - before[1]
    return {
        "bare_calls_a_second": calls / (after[0] - before[0]),
        "bare_cpu_ms_a_step": 1000 * (after[2] - before[2]) / calls,
    }


async def run_bare_benchmark(temporal: Client, count: int, *, local: bool) -> HistorySteps:
    """Run the engine alone."""
    queue = f"bare-{uuid.uuid4().hex[:8]}"
    async with Worker(
        temporal, task_queue=queue, workflows=[Bare], activities=[do_nothing, do_nothing_locally]
    ):
        await temporal.execute_workflow(Bare.run, args=[count, local], id=queue, task_queue=queue)
    return history_steps(
        await workflow_histories(temporal, queue), "do_nothing", every=1 if local else 2
    )
