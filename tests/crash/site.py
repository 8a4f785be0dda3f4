"""A worker on a task queue and a workspaces root of its own, with its jobs and their model."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from activities.checkpoints import Root
from activities.rehearsal import Reply, Request
from activities.rehearsal.server import ModelServer
from tests.crash.aims import Aim, View
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, Worker

SECONDS = 120
"""Longest time without a new step, and longest time to the end once nothing is disturbed."""


@dataclass
class Blow:
    """One kill or freeze."""

    aim: str
    hit: bool
    """Whether the moment aimed at came."""
    recovery: float
    """Seconds until the last of the jobs took its next step."""


@dataclass
class Site:
    """See the module. `delay`: seconds of each model call."""

    name: str
    folder: Path
    nursery: Nursery
    address: str
    ledgers: tuple[Ledger, ...]
    delay: float = 0.1
    blows: list[Blow] = field(default_factory=list)
    bodies: dict[str, Request] = field(default_factory=dict)
    handles: list[WorkflowHandle[Any, dict[str, Any]]] = field(default_factory=list)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root = self.folder / self.name
        self.model = ModelServer(self._answer, delay=self.delay)
        self._arrived = 0.0
        self._new: Counter[str] = Counter()
        self._known: set[str] = set()
        self.worker = self.another_worker()

    def another_worker(self) -> Worker:
        return self.nursery.worker(self.address, self.root, self.name, self.model.base_url)

    @property
    def calls(self) -> Counter[str]:
        """How often each request arrived, by the digest of its body."""
        return Counter(call.digest for call in self.model.calls)

    def job_id(self, ledger: Ledger) -> str:
        return f"{self.name}-{ledger.name}"

    async def start(self, client: Client, **settings: object) -> None:
        for ledger in self.ledgers:
            handle = await client.start_workflow(
                "Job",
                ledger.start(**settings),
                id=self.job_id(ledger),
                task_queue=self.name,
                result_type=dict,
            )
            self.handles.append(handle)

    async def result(self) -> dict[str, dict[str, Any]]:
        """The results of all jobs, by name; while the server is away it is waited for."""
        async with asyncio.timeout(SECONDS):
            for ledger, handle in zip(self.ledgers, self.handles, strict=True):
                while ledger.name not in self.results:
                    with suppress(RPCError):
                        self.results[ledger.name] = await handle.result()
        return self.results

    @property
    def unfinished(self) -> list[Ledger]:
        """Jobs with model calls to come."""
        return [ledger for ledger in self.ledgers if not self._closing(ledger)]

    async def aimed(self, aim: Aim, generator: random.Random, patience: float = 6.0) -> bool:
        root = Root.open(self.root, create=True)
        view = View(
            repositories=[root.repository(self.job_id(ledger)) for ledger in self.unfinished],
            in_flight=lambda: time.monotonic() - self._arrived < self.delay / 2,
            delay=self.delay,
            random=generator,
            patience=patience,
        )
        return await asyncio.to_thread(aim, view)

    async def kill(self, aim: Aim, generator: random.Random) -> None:
        """Kill the worker at that moment, start another, and see each job take its next step."""
        hit = await self.aimed(aim, generator)
        self.worker.kill()
        since = time.monotonic()
        before, waiting = self._new.copy(), self.unfinished
        self.worker = self.another_worker()
        await self.progress(before, waiting)
        self.blows.append(Blow(aim.__name__, hit, time.monotonic() - since))

    async def freeze(self, aim: Aim, generator: random.Random, steps: int = 2) -> None:
        """Freeze the worker at that moment, let another one serve the jobs, and wake it again."""
        hit = await self.aimed(aim, generator)
        frozen = self.worker
        frozen.freeze()
        since = time.monotonic()
        before, waiting = self._new.copy(), self.unfinished
        self.worker = self.another_worker()
        await self.progress(before, waiting, steps)
        self.blows.append(Blow(aim.__name__, hit, time.monotonic() - since))
        frozen.wake()

    async def progress(
        self, before: Counter[str] | None = None, ledgers: list[Ledger] | None = None, steps: int = 1
    ) -> None:
        """Return when each of the jobs has sent that many requests it never sent before."""
        before = self._new.copy() if before is None else before
        waiting = list(self.unfinished if ledgers is None else ledgers)
        async with asyncio.timeout(SECONDS):
            while any(
                self._new[ledger.name] < before[ledger.name] + steps and not self._closing(ledger)
                for ledger in waiting
            ):
                await asyncio.sleep(0.01)

    def _closing(self, ledger: Ledger) -> bool:
        return self._new[f"{ledger.name} closes"] > 0

    def _answer(self, request: Request) -> Reply:
        text = str(request["messages"])
        ledger = next(ledger for ledger in self.ledgers if ledger.name in text)
        reply = ledger(request)
        self._arrived = time.monotonic()
        if text not in self._known:
            self._known.add(text)
            self._new[ledger.name] += 1
        if any(name == "job_complete" for name, _ in reply.calls):
            self._new[f"{ledger.name} closes"] += 1
        return reply

    def close(self) -> None:
        self.model.__exit__(None, None, None)


@asynccontextmanager
async def site(*arguments: Any, **options: Any) -> AsyncIterator[Site]:
    made = Site(*arguments, **options)
    with made.model:
        try:
            yield made
        finally:
            made.worker.kill()
