"""Trials that mostly wait, run side by side: all begin with the first test.

A killed worker's tasks go to another worker only after time-outs of some seconds, during which the
machine is idle.
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from tests.crash.processes import Nursery, TemporalServer
from tests.soak import soak

T = TypeVar("T")
AT_ONCE = soak(4, 1)
"""Trials at a time; with many repetitions each has enough work of its own."""
THREADS = 40
"""Threads for aims and other blocking waits, of all trials together."""


@dataclass(frozen=True)
class Place:
    """A trial's resources: shared processes, and its own folder."""

    folder: Path
    workers: Nursery
    temporal: TemporalServer


Trial = Callable[[Place], Coroutine[Any, Any, T]]


class Begun:
    """The trials of a session; call it with a trial to get that trial's result."""

    def __init__(self, trials: Iterable[Trial[Any]], place: Callable[[], Place]) -> None:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
        self._room = asyncio.Semaphore(AT_ONCE)
        self._tasks = {
            trial: asyncio.create_task(self._run(trial, place())) for trial in dict.fromkeys(trials)
        }

    async def _run(self, trial: Trial[T], place: Place) -> T:
        async with self._room:
            return await trial(place)

    async def __call__(self, trial: Trial[T]) -> T:
        result: T = await self._tasks[trial]
        return result

    async def ended(self) -> None:
        """Return once all of them have ended, whatever their result."""
        await asyncio.wait(self._tasks.values())

    async def given_up(self) -> None:
        """End the trials that no test waits for any more."""
        for task in self._tasks.values():
            task.cancel()
        await self.ended()
