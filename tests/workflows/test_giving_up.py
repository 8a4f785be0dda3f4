"""Cancel, rewind and pause take effect during a model call, without waiting for a heartbeat."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.testing import WorkflowEnvironment

from activities.checkpoints import Root
from engine.codec import data_converter
from engine.development import find_temporal_binary
from rehearsal import Hang
from rehearsal.wire import Answer, Request, Stall
from tests.soak import patient, soak
from tests.workflows.queries import query_status
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import Short, job

MOST_SECONDS = 3.0
RUNS = [*product((True, False), repeat=2)][:: soak(3, 1)]
"""Whether the server tells a worker at once that an activity is cancelled, and whether heartbeats
are quick.
"""


class SlowOnce:
    """Does a short job, but its third reply takes a minute, the first time."""

    def __init__(self) -> None:
        self.calls, self.short, self.slow = 0, Short(), asyncio.Event()

    def __call__(self, request: Request) -> Answer:
        self.calls += 1
        if self.calls == 3:
            self.slow.set()
            return Hang()
        return self.short(request)


@pytest.fixture(scope="module")
async def plain_server() -> AsyncIterator[Client]:
    """Run a server that tells a worker of a cancellation only when it sends a heartbeat."""
    async with await WorkflowEnvironment.start_local(
        data_converter=data_converter(),
        dev_server_existing_path=str(find_temporal_binary()),
        dev_server_log_level="error",
        dev_server_extra_args=("--output", "none"),
    ) as environment:
        yield environment.client


@pytest.mark.parametrize(("tells", "quick"), RUNS)
async def test_cancel_and_rewind_amid_a_model_call_take_seconds(
    temporal: Client, plain_server: Client, root: Root, *, tells: bool, quick: bool
) -> None:
    client, model = temporal if tells else plain_server, SlowOnce()
    grace = timedelta(seconds=1)
    async with serving(client, root, model, quick=quick, grace=grace) as jobs:
        first = await jobs.start(job())
        await asyncio.wait_for(model.slow.wait(), 30)
        await asyncio.sleep(0.5)
        begun = time.monotonic()
        await first.signal("rewind", {"issue": "Begin again."})
        await jobs.until(first, rewinds=1)
        took = {"rewind": time.monotonic() - begun}
        assert (await jobs.result(first))["status"] == "completed"
        model.calls, model.short = 0, Short()
        model.slow.clear()
        second = await jobs.start(job())
        await asyncio.wait_for(model.slow.wait(), 30)
        await asyncio.sleep(0.5)
        begun = time.monotonic()
        await second.signal("cancel", {"reason": "enough"})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(second)
        took["cancel"] = time.monotonic() - begun
    assert max(took.values()) < patient(MOST_SECONDS), took


class SlowReply:
    """Does a short job; its third reply takes some seconds."""

    def __init__(self, seconds: float) -> None:
        self.calls, self.short, self.slow, self.seconds = 0, Short(), asyncio.Event(), seconds

    def __call__(self, request: Request) -> Answer:
        self.calls += 1
        if self.calls == 3:
            self.slow.set()
            return Stall(self.short(request), self.seconds)
        return self.short(request)


async def _paused(jobs: Jobs, model: SlowReply) -> WorkflowHandle[Any, dict[str, Any]]:
    handle = await jobs.start(job())
    await asyncio.wait_for(model.slow.wait(), 30)
    await asyncio.sleep(0.5)
    begun = time.monotonic()
    await handle.signal("pause", {"by": "ben"})
    status = await jobs.until(handle, waiting_for="paused")
    assert time.monotonic() - begun < patient(MOST_SECONDS)
    assert "is kept, unless something is changed" in status["waiting"]["message"]
    return handle


@pytest.mark.parametrize("quick", soak([False], [True, False]))
async def test_a_pause_amid_a_model_call_takes_seconds_and_costs_no_call(
    temporal: Client, root: Root, *, quick: bool
) -> None:
    model = SlowReply(2)
    async with serving(temporal, root, model, quick=quick) as jobs:
        handle = await _paused(jobs, model)
        await handle.signal("tell", {"text": "Use metric units."})
        await asyncio.sleep(4)  # The reply comes in meanwhile.
        paused = await query_status(handle)
        assert (paused["waiting_for"], paused["usage"]["model_calls"]) == ("paused", 2)
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"
        calls, model.calls = model.calls, 3
        await jobs.result(await jobs.start(job()))
        status = await query_status(handle)
    assert calls == model.calls - 3
    assert status["usage"]["model_calls"] == calls
    assert [act["did"] for act in status["people"]] == [
        "paused the job", "let the job go on", "told the agent"
    ]  # fmt: skip


async def test_a_reply_is_asked_for_again_after_a_pause_in_which_files_were_edited(
    temporal: Client, root: Root
) -> None:
    model = SlowReply(2)
    async with serving(temporal, root, model) as jobs:
        handle = await _paused(jobs, model)
        (jobs.folder(handle) / "mine.md").write_text("Mine.")
        await asyncio.sleep(2)
        await handle.signal("resume", {})
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        assert jobs.snapshot(handle, result["checkpoint"]).files.read("mine.md") == b"Mine."
        status = await query_status(handle)
    assert status["usage"]["model_calls"] == model.calls


@pytest.mark.parametrize("signal", ["cancel", "rewind"])
async def test_a_job_paused_amid_a_model_call_is_cancelled_and_rewound(
    temporal: Client, root: Root, signal: str
) -> None:
    model = SlowReply(30)
    async with serving(temporal, root, model) as jobs:
        handle = await _paused(jobs, model)
        if signal == "cancel":
            await handle.signal("cancel", {"reason": "enough"})
            with pytest.raises(WorkflowFailureError):
                await jobs.result(handle, 10)
        else:
            await handle.signal("rewind", {"issue": "Begin again."})
            result = await jobs.result(handle, 20)
            assert (result["status"], result["rewinds"]) == ("completed", 1)
