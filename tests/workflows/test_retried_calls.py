"""Signals that do not wait for a call which is only retried."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root
from rehearsal import Failure, Request
from rehearsal.wire import Answer
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import Short, job

BUSY = Failure(503, "overloaded", headers={"retry-after": "3000"})
"""Within the patience of the model, so that the server tries the call again by itself."""
PATIENT = {
    "model.patience_seconds": 86_400,
    "model.name": "first",
    "model.base_url": "http://model/v1",
}


class Busy:
    """Does a short job; the endpoint is too busy for its second call."""

    def __init__(self) -> None:
        self.models: list[str] = []
        self.refused = asyncio.Event()
        self._short = Short()

    def __call__(self, request: Request) -> Answer:
        self.models.append(request["model"])
        if len(self.models) != 2:
            return self._short(request)
        self.refused.set()
        return BUSY

    async def begin_job(self, jobs: Jobs) -> WorkflowHandle[Any, dict[str, Any]]:
        """Return a job whose call is to be tried again in fifty minutes."""
        handle = await jobs.start(job(set=PATIENT))
        async with asyncio.timeout(20):
            await self.refused.wait()
        return handle


async def test_a_pause_does_not_wait_for_a_call_that_is_retried(
    temporal: Client, root: Root
) -> None:
    model = Busy()
    async with serving(temporal, root, model) as jobs:
        handle = await model.begin_job(jobs)
        await handle.signal("pause", {"by": "ben"})
        status = await jobs.until(handle, waiting_for="paused")
        assert [act["did"] for act in status["people"]] == ["paused the job"]
        assert list(jobs.folder(handle).glob("errors/*")) == []
        await handle.signal("resume", {})
        result = await jobs.result(handle)
        # The call that was given up leaves nothing behind.
        undisturbed = await jobs.result(await jobs.start(job(set=PATIENT)))
    assert result["tree"] == undisturbed["tree"]


async def test_a_resume_gives_a_call_that_is_retried_other_settings(
    temporal: Client, root: Root
) -> None:
    model = Busy()
    async with serving(temporal, root, model) as jobs:
        handle = await model.begin_job(jobs)
        await handle.signal("resume", {"set": {"model.name": "second"}})
        assert (await jobs.result(handle))["status"] == "completed"
        status = await handle.query("status")
    assert (model.models[:2], set(model.models[2:])) == (["first", "first"], {"second"})
    assert status["model"] == "second"
    assert status["refusals"] == 0
