"""A receiver, and workers as processes that send to it."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from temporalio.client import Client

from engine.development import DevelopmentServer
from rehearsal.server import ModelServer
from rehearsal.wire import Model
from tests.crash.processes import REPOSITORY, Nursery, Worker, environment
from tests.engine.otel.receiver import Receiver, Span

KEY = "sk-planted-key-0123456789"


@dataclass
class Watched:
    """See the module."""

    client: Client
    queue: str
    variables: dict[str, str]
    receiver: Receiver
    nursery: Nursery
    workers: list[Worker] = field(default_factory=list)

    async def worker(self) -> Worker:
        """Start another worker; return when it is ready."""
        new_worker = self.nursery.start(self.queue, self.variables)
        self.workers.append(new_worker)
        await new_worker.until_ready()
        return new_worker

    async def run(self, *command: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            sys.executable, *command, cwd=REPOSITORY, env=self.variables,
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip

    async def drained(self) -> None:
        """Stop the last worker in good order; by then it has sent everything."""
        self.workers[-1].drain()
        assert await self.workers[-1].left() == 0

    async def result(self, job: str) -> dict[str, Any]:
        handle = self.client.get_workflow_handle(job, result_type=dict)
        return await asyncio.wait_for(handle.result(), 180)


@asynccontextmanager
async def watched(
    running: DevelopmentServer, workers: Nursery, folder: Path, model: Model, **variables: str
) -> AsyncIterator[Watched]:
    """Export to the receiver at once, unless the variables say otherwise."""
    with Receiver() as receiver, ModelServer(model, delay=0.03) as models:
        settings = {
            **environment(running.address, folder / "root", folder.name, models.base_url),
            "OPENAI_API_KEY": KEY,
            "LONGHAUL_MODEL": "gpt-5-mini",
            "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.address,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "120",  # see conftest.py
            **variables,
        }
        site = Watched(running.client, folder.name, settings, receiver, workers)
        try:
            yield site
        finally:
            for worker in site.workers:
                worker.kill()


def under(spans: list[Span], parent: Span) -> list[Span]:
    return [span for span in spans if span.parent == parent.id]


def named(spans: list[Span], name: str) -> list[Span]:
    return [span for span in spans if span.name == name]
