"""One piece of work, and everything that can be done to the system it runs on."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import WorkflowHandle, WorkflowQueryFailedError
from temporalio.service import RPCError

from activities.checkpoints import Root
from rehearsal.server import ModelServer
from tests.chaos import disk
from tests.chaos.clock import Clock
from tests.chaos.model import Moody
from tests.chaos.plan import AIMS
from tests.chaos.proxy import Proxy
from tests.chaos.works import Work
from tests.crash.aims import View
from tests.crash.processes import Nursery, TemporalServer, Worker

DELAY = 0.05
"""Seconds of a model call."""
JOB = "chaos"
"""The id of every job and project here, as each has its own server."""


@dataclass
class Place:
    """A server, a network, a model, a disk, a clock and workers for one piece of work.

    An async context manager: when it is entered the work has begun.
    """

    name: str
    work: Work
    folder: Path
    """For files that are examined afterwards."""
    nursery: Nursery
    random: random.Random
    mounted: bool
    """Whether the workspaces root is on a separate file system."""
    jumps: bool
    """Whether the workers' clock can be set."""
    pause: float = 0.0
    """Seconds in the middle of each answer of the model."""
    metrics_port: int | None = None
    """Where the server serves its own metrics."""
    variables: dict[str, str] = field(default_factory=dict)
    """Further variables of the workers' environment."""
    looks: float = 1.0
    """Seconds between the looks of the person who resumes jobs."""
    key: str = "none"
    """The key that the model takes."""
    workers: list[Worker] = field(default_factory=list)
    died: list[str] = field(default_factory=list)
    """Logs of workers that ended unexpectedly."""
    parked: list[str] = field(default_factory=list)
    """Waits that needed a signal to end, with their reasons."""

    async def __aenter__(self) -> Place:
        self.folder.mkdir(parents=True)
        self.disk = self.folder / "disk"
        self._stack = AsyncExitStack()
        if self.mounted:
            disk.mount(self.disk)
            self._stack.callback(disk.unmount, self.disk)
        self.root = Root.open(self.disk / "root", create=True)
        self.moody = Moody(self.work.model, self.pause)
        self.model = self._stack.enter_context(
            ModelServer(self.moody, delay=DELAY, key=lambda: self.key)
        )
        self.server = self._stack.enter_context(
            TemporalServer(self.folder / "server", metrics_port=self.metrics_port)
        )
        self.to_temporal = await self._stack.enter_async_context(Proxy(self.server.port))
        self.to_model = await self._stack.enter_async_context(Proxy(self.model.port))
        self.clock = Clock(self.folder / "clock")
        self.client = await self.server.client()
        self._stack.callback(self._kill_all)
        self.start_worker()
        start = self.work.start(self.root)
        self.handle: WorkflowHandle[Any, dict[str, Any]] = await self.client.start_workflow(
            self.work.workflow, start, id=JOB, task_queue=self.name, result_type=dict
        )
        self.result = asyncio.create_task(self._result())
        self._stack.callback(self.result.cancel)
        return self

    async def __aexit__(self, *raised: object) -> None:
        await self._stack.aclose()

    # Workers

    @property
    def worker(self) -> Worker:
        """The worker started last."""
        return self.workers[-1]

    def start_worker(self) -> None:
        jumping = self.clock.environment if self.jumps else {}
        worker = self.nursery.worker(
            f"127.0.0.1:{self.to_temporal.port}",
            self.root.path,
            self.name,
            f"http://127.0.0.1:{self.to_model.port}/v1",
            **jumping,
            **self.variables,
        )
        self.workers.append(worker)

    async def kill_worker(self) -> None:
        """`kill -9` the worker started last."""
        self.look_for_the_dead()
        killed = self.workers.pop()
        killed.kill()
        await asyncio.to_thread(killed.until_gone)

    def look_for_the_dead(self) -> None:
        """Find workers that ended unexpectedly, and replace them."""
        for worker in [each for each in self.workers if not each.alive]:
            self.workers.remove(worker)
            self.died.append(f"{worker.log}: {worker.log.read_text()[-1500:]}")
        if not self.workers:
            self.start_worker()

    def _kill_all(self) -> None:
        for worker in self.workers:
            worker.kill()
            worker.until_gone()

    # Progress of the work

    @property
    def calls(self) -> int:
        """Model calls answered, repeated ones not counted."""
        return len(self.moody.answered)

    @property
    def ended(self) -> bool:
        return self.result.done()

    async def aim(self, name: str) -> bool:
        """Wait for the moment, on a separate thread, so that nothing here delays it."""
        checkpoints = self.root.path / ".longhaul" / "checkpoints"
        view = View(
            repositories=list(checkpoints.glob("*.git")),
            ending=lambda: self.ended,
            in_flight=lambda: time.monotonic() - self.moody.arrived < DELAY / 2,
            delay=DELAY,
            random=self.random,
        )
        return await asyncio.to_thread(AIMS[name], view)

    async def progress(self, since: int, calls: int, patience: float) -> None:
        """Return after so many new calls, or when the work has ended; frees jobs that wait.

        Raises:
            TimeoutError: nothing of the kind within so many seconds.
        """
        async with asyncio.timeout(patience):
            while not self.ended and self.calls < since + calls:
                self.look_for_the_dead()
                await self.shepherd()
                await asyncio.sleep(0.05)

    async def shepherd(self) -> None:
        """Act as a person would: resume jobs that wait for one, now that the cause is gone."""
        if time.monotonic() < getattr(self, "_next_look", 0):
            return
        self._next_look = time.monotonic() + self.looks
        # A worker that is down or busy answers no query; the next look may succeed.
        with suppress(RPCError, TimeoutError, WorkflowQueryFailedError):
            async for job in self.client.list_workflows("ExecutionStatus = 'Running'"):
                handle = self.client.get_workflow_handle(job.id)
                status = await asyncio.wait_for(handle.query("status"), 3)
                waiting = status.get("waiting")
                if waiting and not waiting.get("trying"):
                    self.parked.append(f"{job.id} {waiting['reason']}: {waiting['message']}")
                    await handle.signal("resume")

    async def _result(self) -> dict[str, Any]:
        """Return the result, even if the server is down for a while."""
        while True:
            with suppress(RPCError):
                return await self.handle.result()
            await asyncio.sleep(0.2)
