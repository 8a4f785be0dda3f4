"""The bare engine: the same number of steps, each two activities that do nothing."""

import asyncio
import random
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.worker import Worker

from benchmarks.histories import HistorySteps, history_steps, workflow_histories
from engine.service import SLOTS

PATIENCE = timedelta(seconds=60)
HEARTBEAT = timedelta(seconds=5)
BEAT_SECONDS = 2.0


@activity.defn
async def do_nothing(number: int) -> int:
    return number


@activity.defn
async def do_nothing_locally(number: int) -> int:
    return number


def bare_latencies(average: float) -> Iterator[float]:
    """Yield durations of calls in seconds, from 2/3 to 4/3 of the average.

    With equal durations, workflows that start together would request their steps at the same moment
    for ever.
    """
    generator = random.Random(0)
    while True:
        yield average * generator.uniform(2 / 3, 4 / 3)


class Waiting:
    """A regular activity that waits as long as a model call takes."""

    def __init__(self, average: float) -> None:
        self._latencies = bare_latencies(average)
        self.calls = 0

    @activity.defn
    async def wait(self, number: int) -> int:
        self.calls += 1
        seconds_left = next(self._latencies)
        while seconds_left > 0:
            await asyncio.sleep(min(seconds_left, BEAT_SECONDS))
            seconds_left -= BEAT_SECONDS
            activity.heartbeat()
        return number


@workflow.defn
class Bare:
    """Runs two activities per step: both regular, or the second one local."""

    def __init__(self) -> None:
        self._steps = 0

    @workflow.query
    def count_steps(self) -> int:
        return self._steps

    @workflow.run
    async def run(self, steps: int, local: bool) -> int:
        for number in range(steps):
            await workflow.execute_activity(do_nothing, number, start_to_close_timeout=PATIENCE)
            if local:
                await workflow.execute_local_activity(
                    do_nothing_locally, number, start_to_close_timeout=PATIENCE
                )
            else:
                await workflow.execute_activity(do_nothing, number, start_to_close_timeout=PATIENCE)
            self._steps += 1
        return steps


@workflow.defn
class BareWaiting:
    """Runs two activities per step: a regular one that waits, a local one that does nothing."""

    @workflow.run
    async def run(self, steps: int) -> int:
        for number in range(steps):
            await workflow.execute_activity(
                "wait", number, start_to_close_timeout=PATIENCE, heartbeat_timeout=HEARTBEAT
            )
            await workflow.execute_local_activity(
                do_nothing_locally, number, start_to_close_timeout=PATIENCE
            )
        return steps


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
