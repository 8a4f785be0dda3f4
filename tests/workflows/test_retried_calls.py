"""Signals that do not wait for a call which is only retried."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root
from rehearsal import Cut, Failure, Reply, Request
from rehearsal.wire import Answer, Stall
from tests.workflows.delegating import SET, Delegating, delegate, task_of
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


async def test_replies_count_that_broke_off_before_a_pause(temporal: Client, root: Root) -> None:
    model, broken = Busy(), asyncio.Event()

    def cut(request: Request) -> Answer:
        answer = model(request)
        if not model.refused.is_set() or broken.is_set():
            return answer
        broken.set()
        return Cut(Reply("tea " * 400))

    async with serving(temporal, root, cut) as jobs:
        handle = await jobs.start(job(set=PATIENT))
        async with asyncio.timeout(20):
            await broken.wait()
        await handle.signal("pause", {})
        usage = (await jobs.until(handle, waiting_for="paused"))["usage"]
        assert usage["unfinished_completion_tokens"] > 100
        await handle.terminate()


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


@pytest.mark.parametrize(
    "settings",
    # With little patience the job itself tries again, and shows that it waits.
    [PATIENT, {**PATIENT, "model.patience_seconds": 1}],
    ids=["patient", "impatient"],
)
async def test_a_pause_keeps_the_reply_of_a_call_that_was_retried(
    temporal: Client, root: Root, settings: dict[str, Any]
) -> None:
    asked: list[str] = []
    short = Short()

    def model(request: Request) -> Answer:
        asked.append(request["model"])
        if len(asked) == 2:
            return Failure(503, "overloaded", headers={"retry-after": "1"})
        return Stall(short(request), 3) if len(asked) == 3 else short(request)

    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=settings))
        await until_receiving(handle)
        await handle.signal("pause", {})
        status = await jobs.until(handle, waiting_for="paused")
        assert (len(asked), status["usage"]["model_calls"]) == (3, 1)
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert len(asked) == result["usage"]["model_calls"] + 1


async def until_receiving(handle: WorkflowHandle[Any, Any]) -> None:
    """Wait until an activity of a job has said that a reply comes in."""
    async with asyncio.timeout(20):
        while True:
            pending = (await handle.describe()).raw_description.pending_activities
            if any(activity.heartbeat_details.payloads for activity in pending):
                return
            await asyncio.sleep(0.1)


async def test_replies_of_other_helpers_are_kept_when_a_call_is_given_up(
    temporal: Client, root: Root
) -> None:
    model = Delegating(*(delegate(f"Leaf {n}?", f"notes/leaf_{n}.md") for n in range(3)), leaves=3)
    asked: list[str] = []
    refused = asyncio.Event()

    def helping(request: Request) -> Any:
        task = task_of(request)[:6]
        asked.append(task)
        if asked.count(task) == 1 and task == "Leaf 0":
            return Stall(Reply(content="Read."), 1.5)
        if asked.count(task) == 1 and task == "Leaf 1":
            refused.set()
            return BUSY
        return Reply(content="Read.")

    model.help = helping  # type: ignore[method-assign]
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set=SET | PATIENT))
        async with asyncio.timeout(20):
            await refused.wait()
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        await handle.signal("resume", {})
        assert (await jobs.result(handle))["status"] == "completed"
    assert sorted(asked) == ["Leaf 0", "Leaf 1", "Leaf 1", "Leaf 2"]
