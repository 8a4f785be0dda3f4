"""The bare engine: the same number of steps, each two activities that do nothing."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from datetime import timedelta

from temporalio import activity, workflow

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
