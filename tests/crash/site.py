"""A task queue and a workspaces root for one test, with a worker, its jobs and their model."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.service import RPCError

from activities.checkpoints import Root
from rehearsal import Answer, Reply, Request
from rehearsal.server import ModelServer
from tests.crash.aims import Aim, View
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.provider.server import Provider, ProviderServer
from tests.provider.strict import Responses

PATIENCE = 180
"""Longest time in seconds without a new step, or to the end of an undisturbed job, in a test."""
DELAY = 0.1
"""Seconds of a model call."""
RESPONSES = {"model.api": "responses", "model.temperature": None}
LEFT_BEHIND = (
    *("index.lock", "HEAD.lock", "config.lock", "packed-refs.lock", "refs/heads/main.lock"),
    *(f"refs/tags/phase/{number:04d}.lock" for number in range(2, 10)),
    *("refs/tags/completed.lock", "objects/pack/tmp_pack_left", "projected.new"),
    *("packing/pack/left", "projecting/0", "journal/left.log"),
)
"""Locks and drafts of killed processes: none may block anything."""


@dataclass
class Blow:
    """One kill or freeze."""

    aim: str
    hit: bool
    """Whether the intended moment came."""
    recovery: float
    """Seconds until each job had taken its next step, or several after a freeze."""


@dataclass
class Site:
    """See the module. The jobs are those of the ledgers, under `<site>-<name>`."""

    name: str
    folder: Path
    nursery: Nursery
    server: TemporalServer
    ledgers: Sequence[Ledger]
    random: random.Random = field(default_factory=random.Random)
    blows: list[Blow] = field(default_factory=list)
    results: dict[str, dict[str, Any]] = field(default_factory=dict)
    """By name of the ledger."""
    variables: dict[str, str] = field(default_factory=dict)
    """Further variables of the workers' environment."""
    has_responses: bool = False
    """Whether the jobs use a strict provider of the Responses API."""

    def __post_init__(self) -> None:
        self.root = Root.open(self.folder / self.name, create=True)
        self.provider = Provider(Responses(self._answer))
        self.model: ModelServer | ProviderServer = (
            ProviderServer(self.provider, DELAY)
            if self.has_responses
            else ModelServer(self._answer, delay=DELAY)
        )
        self.asked: dict[str, Counter[str]] = {ledger.name: Counter() for ledger in self.ledgers}
        """How often each request of a job arrived."""
        self._lock = threading.Lock()
        self._arrived = 0.0
        self._closing: set[str] = set()
        self.handles: dict[str, WorkflowHandle[Any, dict[str, Any]]] = {}

    def job_id(self, name: str) -> str:
        return f"{self.name}-{name}"

    def start_worker(self, root: Path | None = None) -> None:
        """Start the worker to use from now on, whatever happened to the one before."""
        root = root or self.root.path
        self.worker = self.nursery.worker(
            self.server.address, root, self.name, self.model.base_url, **self.variables
        )

    async def start_jobs(self, client: Client) -> None:
        for ledger in self.ledgers:
            self.handles[ledger.name] = await client.start_workflow(
                "Job",
                ledger.start(**(RESPONSES if self.has_responses else {})),
                id=self.job_id(ledger.name),
                task_queue=self.name,
                result_type=dict,
            )

    async def finish(self) -> None:
        """Wait for the results of all jobs, even while the server is down."""
        try:
            async with asyncio.timeout(PATIENCE):
                for name, handle in self.handles.items():
                    while name not in self.results:
                        with suppress(RPCError):
                            self.results[name] = await handle.result()
        except TimeoutError:
            raise AssertionError(await self._told({})) from None

    # Blows

    async def kill(self, aim: Aim) -> None:
        """Kill the worker with `kill -9` within a step; another one takes over, whatever was left
        behind.
        """
        hit = await self.aim(aim)
        self.worker.kill()
        with self._blow(aim, hit) as before:
            await asyncio.to_thread(self.worker.until_gone)
            self._leave_locks()
            self.start_worker()
            await self._go_on(before)

    async def freeze(self, aim: Aim, steps: int) -> None:
        """Freeze the worker within a step; wake it after another one has taken so many steps."""
        hit = await self.aim(aim)
        frozen = self.worker
        frozen.freeze()
        with self._blow(aim, hit) as before:
            self.start_worker()
            await self._go_on(before, steps)
        frozen.wake()

    async def kill_server(self, aim: Aim, away: float, *, worker_too: bool) -> None:
        """Kill the server with `kill -9` within a step, for `away` seconds, alone or with the
        worker.
        """
        hit = await self.aim(aim)
        self.server.kill()
        if worker_too:
            self.worker.kill()
        with self._blow(aim, hit) as before:
            await asyncio.sleep(away)
            self.server.start()
            if worker_too:
                await self.server.client()
                self.start_worker()
            await self._go_on(before)

    def _leave_locks(self) -> None:
        """Leave locks like those of killed writers, in git repositories and in ours."""
        for name in self.asked:
            repository = self.root.repository(self.job_id(name))
            for left in LEFT_BEHIND if repository.exists() else ():
                (repository / left).parent.mkdir(parents=True, exist_ok=True)
                (repository / left).write_text("left behind")

    @contextmanager
    def _blow(self, aim: Aim, hit: bool) -> Iterator[dict[str, int]]:
        since = time.monotonic()
        yield self.steps()
        self.blows.append(Blow(aim.__name__, hit, time.monotonic() - since))

    async def _go_on(self, before: dict[str, int], steps: int = 1) -> None:
        """Wait for the next steps of each job, or for its end if no more steps are expected."""
        await self.progress(before, steps)
        if not before:
            await self.finish()

    async def aim(self, aim: Aim) -> bool:
        """Wait for the moment, on a separate thread, so that nothing here delays it."""
        view = View(
            repositories=[self.root.repository(self.job_id(name)) for name in self.asked],
            ending=lambda: not self.unfinished,
            in_flight=lambda: time.monotonic() - self._arrived < DELAY / 2,
            delay=DELAY,
            random=self.random,
        )
        return await asyncio.to_thread(aim, view)

    @property
    def unfinished(self) -> list[str]:
        """Jobs that have not called `job_complete` yet."""
        return [name for name in self.asked if name not in self._closing]

    def steps(self) -> dict[str, int]:
        """Model calls of each unfinished job, repeated ones not counted."""
        return {name: len(self.asked[name]) for name in self.unfinished}

    async def progress(self, since: dict[str, int], steps: int = 1) -> None:
        """Return when each job has taken so many more steps, or is about to end."""
        until = time.monotonic() + PATIENCE
        while any(
            name in self.unfinished and len(self.asked[name]) < count + steps
            for name, count in since.items()
        ):
            assert time.monotonic() < until, await self._told(since)
            await asyncio.sleep(0.01)

    async def _told(self, since: dict[str, int]) -> str:
        """Describe the state of the jobs, for a message."""
        lines = [f"{self.name}: {self.blows}, no progress since {since}, now {self.steps()}"]
        for handle in self.handles.values():
            description = (await handle.describe()).raw_description
            lines.append(
                f"{handle.id}: {description.pending_activities} {description.pending_workflow_task}"
            )
        return "\n".join([*lines, self.worker.log.read_text()[-2000:]])

    # The model

    def _answer(self, request: Request) -> Answer:
        text = str(request["messages"])
        ledger = next(ledger for ledger in self.ledgers if ledger.name in text)
        answer = ledger(request)
        with self._lock:
            self._arrived = time.monotonic()
            self.asked[ledger.name][text] += 1
            if isinstance(answer, Reply) and any(
                name == "job_complete" for name, _ in answer.calls
            ):
                self._closing.add(ledger.name)
        return answer
