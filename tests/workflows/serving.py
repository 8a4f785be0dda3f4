"""A real Temporal server, and workers in this process with any model a test wants."""

import asyncio
import itertools
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from temporalio.client import Client, WorkflowHandle

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root, open_checkpoints
from activities.job.snapshot import Snapshot
from engine.service import build_worker
from rehearsal import RehearsalTransport
from rehearsal.wire import Model
from tests.workflows.queries import query_status

_numbers = itertools.count(1)
SECONDS = 120
SHUTDOWN_SECONDS = 60
FAILS = timedelta(seconds=2)
"""For workflow tasks that should fail: the next attempt starts after this time, not after 10 s."""


@dataclass
class Jobs:
    """Starts jobs on a task queue for one test, and waits for their results."""

    client: Client
    root: Root
    queue: str

    async def start(
        self,
        *values: Any,
        job_id: str | None = None,
        kind: str = "Job",
        task_timeout: timedelta | None = None,
    ) -> WorkflowHandle[Any, dict[str, Any]]:
        return await self.client.start_workflow(
            kind,
            args=[_without_review(kind, value) for value in values],
            id=job_id or f"{self.queue}-{next(_numbers)}",
            task_queue=self.queue,
            result_type=dict,
            task_timeout=task_timeout,
        )

    async def result(
        self, handle: WorkflowHandle[Any, dict[str, Any]], seconds: float = SECONDS
    ) -> dict[str, Any]:
        try:
            return await asyncio.wait_for(handle.result(), seconds)
        except TimeoutError:
            pytest.fail(f"no result in {seconds} s; the last status: {await query_status(handle)}")

    async def until(self, handle: WorkflowHandle[Any, Any], **wanted: Any) -> dict[str, Any]:
        """Return the status soon after the named fields have the named values. Queries get rarer
        with time, as each one costs both the server and the worker something.
        """
        status: dict[str, Any] = {}
        began = time.monotonic()
        try:
            async with asyncio.timeout(SECONDS):
                while True:
                    status = await query_status(handle)
                    if all(_holds(status, name, value) for name, value in wanted.items()):
                        return status
                    await asyncio.sleep(max(0.05, (time.monotonic() - began) / 5))
        except TimeoutError:
            pytest.fail(f"{wanted} did not come in {SECONDS} s; the last status: {status}")

    def snapshot(self, handle: WorkflowHandle[Any, Any], commit: str) -> Snapshot:
        return Snapshot.load(open_checkpoints(self.root, handle.id), commit)

    def folder(self, handle: WorkflowHandle[Any, Any]) -> Path:
        return self.root.workspace(handle.id)


def _without_review(kind: str, value: Any) -> Any:
    """Return the input of a start with the review turned off, unless it says something of it.

    A fork has the configuration of the first job.
    """
    if kind == "Trial" and isinstance(value, dict) and "start" in value:
        return {**value, "start": _without_review("Job", value["start"])}
    settings = value.get("set", {}) if isinstance(value, dict) else None
    if kind != "Job" or not isinstance(settings, dict) or "fork" in value:
        return value
    if any(key.partition(".")[0] == "review" for key in settings):
        return value
    return {**value, "set": {**settings, "review": "none"}}


def _holds(status: dict[str, Any], name: str, value: Any) -> bool:
    actual = status.get(name)
    if callable(value):
        return actual is not None and bool(value(actual))
    return bool(actual == value)


def client_for(model: Model | httpx2.AsyncBaseTransport) -> AsyncOpenAI:
    """Return a client of a model, or of a provider with its own protocol."""
    transport = model if isinstance(model, httpx2.AsyncBaseTransport) else RehearsalTransport(model)
    return AsyncOpenAI(
        base_url="http://model/v1",
        api_key="none",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )


@asynccontextmanager
async def serving(
    client: Client, root: Root, model: Model | httpx2.AsyncBaseTransport, **options: Any
) -> AsyncIterator[Jobs]:
    """Run a worker with this model on its own task queue."""
    queue = options.pop("queue", None) or f"test-{next(_numbers)}"
    openai = client_for(model)
    worker = build_worker(
        client,
        root=root,
        task_queue=queue,
        activities=all_activities(root, connect=lambda _: openai),
        **options,
    )
    await worker.__aenter__()
    try:
        yield Jobs(client, root, queue)
    finally:
        # The SDK's core may panic while it shuts down, and then it never says that it has ended.
        with suppress(TimeoutError):
            async with asyncio.timeout(SHUTDOWN_SECONDS):
                await worker.__aexit__(*sys.exc_info())
