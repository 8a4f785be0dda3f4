"""Limits in real jobs: each parks the job before the call that would exceed it."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from activities.job import job_folder
from activities.steps import show_folder
from rehearsal import Failure
from tests.workflows.deviating import Deviating
from tests.workflows.queries import query_status
from tests.workflows.resting import at_todo
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Short, hand_over, job, plan

PRICES = {"rehearsal": {"prompt": 100, "cached": 80, "completion": 400}}


def charged(**settings: Any) -> dict[str, Any]:
    """Start a job with short replies on a model that costs money."""
    base = {"model.name": "rehearsal", "model.max_output_tokens": 100, "prices": PRICES}
    named = {key.replace("__", "."): value for key, value in settings.items()}
    return job(set=base | named)


@pytest.fixture
async def jobs(temporal: Client, root: Root) -> AsyncIterator[Jobs]:
    async with serving(temporal, root, Short()) as served:
        yield served


async def test_cost_parks_before_it_is_passed_and_a_raised_limit_outlives_runs(
    temporal: Client, root: Root
) -> None:
    # So many calls that each is a small part of the total.
    model = Short({"Hand": [hand_over(*[{}] * 10), DONE]})
    async with serving(temporal, root, model) as jobs:
        free = await jobs.start(charged())
        total = (await jobs.result(free))["usage"]["cost"]
        used = (await query_status(free))["usage"]
        fresh = used["prompt_tokens"] - used["cached_tokens"]
        due = fresh * 100 + used["cached_tokens"] * 80 + used["completion_tokens"] * 400
        assert total == pytest.approx(due / 1_000_000)
        half = round(total / 2, 2)
        handle = await jobs.start(charged(limits__job__cost=half, limits__history_events=100))
        status = await jobs.until(handle, waiting_for="budget")
        assert half * 0.8 < status["usage"]["cost"] <= half
        assert status["limits"]["job"]["cost"] == {"limit": half, "spent": status["usage"]["cost"]}
        assert f"The job's cost limit is {half:.2f}" in status["waiting"]["message"]
        assert f"starter.py limit {handle.id} cost=" in status["waiting"]["remedy"]

        await handle.signal("limit", {"cost": half + 0.000001})
        status = await jobs.until(handle, notices=lambda told: any("no room" in n for n in told))
        assert status["waiting_for"] == "budget"
        await handle.signal("limit", {"cost": 20 * total, "phase": {"tokens": 10**9}})
        result = await jobs.result(handle)
        assert result["usage"]["cost"] == total
        status = await query_status(handle)
        assert status["limits"]["job"]["cost"]["limit"] == 20 * total
        assert status["limits"]["phase"]["tokens"]["limit"] == 10**9
        assert (await handle.describe()).run_id != handle.first_execution_run_id


async def test_what_the_endpoint_finds_too_long_is_compacted_only_where_there_is_room(
    temporal: Client, root: Root
) -> None:
    model = Deviating({2: Failure(400, "no", code="context_length_exceeded")}, Short())
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(charged(limits__job__model_calls=2))
        status = await jobs.until(handle, waiting_for="budget")
        assert (len(model.requests), status["usage"]["model_calls"]) == (2, 1)
        await handle.signal("limit", {"model_calls": 500})
        assert (await jobs.result(handle))["status"] == "completed"


async def test_a_limit_on_cost_without_a_price_fails_the_start(jobs: Jobs) -> None:
    for scope in ("job", "phase"):
        settings = {"model.base_url": "http://model/v1", f"limits.{scope}.cost": 2}
        handle = await jobs.start(job(set=settings))
        with pytest.raises(WorkflowFailureError) as failed:
            await jobs.result(handle)
        message = str(failed.value.cause)
        assert f"limits.{scope}.cost" in message
        assert "set prices.gpt-5-mini" in message


async def test_a_rewind_gives_no_tokens_back(temporal: Client, root: Root) -> None:
    model = Short({"Rethink": [plan("[ ] Boil", "[ ] Brew"), DONE]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(charged(limits__job__tokens=6_000))
        before = await jobs.until(handle, waiting_for="budget")
        spent = before["limits"]["job"]["tokens"]["spent"]
        assert spent <= 6_000
        assert "tokens" in before["waiting"]["message"]
        await handle.signal("rewind", {"issue": "Too dear.", "phase": 1})
        after = await jobs.until(handle, waiting_for="budget", rewinds=1)
        # The new conversation is shorter and may allow a call; nothing spent is given back.
        assert all(after["usage"][key] >= value for key, value in before["usage"].items())
        assert spent <= after["limits"]["job"]["tokens"]["spent"] <= 6_000
        await handle.signal("limit", {"tokens": 10_000_000})
        assert (await jobs.result(handle))["usage"]["prompt_tokens"] > spent


async def test_tool_calls_and_a_resume_that_changes_nothing(jobs: Jobs) -> None:
    handle = await jobs.start(charged(limits__job__tool_calls=3))
    status = await jobs.until(handle, waiting_for="budget")
    assert status["usage"]["tool_calls"] == 3
    await handle.signal("resume", {})
    status = await jobs.until(handle, refusals=1)
    assert status["waiting_for"] == "budget"
    assert f"limit {handle.id} tool_calls=6" in status["notices"][-1]
    await handle.signal("limit", {"tool_calls": 4})
    await jobs.until(handle, usage=lambda usage: usage["tool_calls"] == 4)
    await handle.terminate()


async def test_model_calls_of_a_phase_and_a_summary_there_is_no_room_for(
    temporal: Client, root: Root
) -> None:
    # Its second phase takes four calls and gets a summary.
    model = Short({"Hand": [hand_over({}, {}, {}, {}), DONE]})
    async with serving(temporal, root, model) as jobs:
        limits = {"limits__phase__model_calls": 2, "limits__summary_calls": 3}
        handle = await jobs.start(charged(**limits))
        status = await jobs.until(handle, waiting_for="budget")
        assert status["phase"]["number"] == 2
        assert status["limits"]["phase"]["model_calls"] == {"limit": 2, "spent": 2}
        await handle.signal("limit", {"phase": {"model_calls": 4}})
        result = await jobs.result(handle)
        assert result["status"] == "completed"
        notices = (await query_status(handle))["notices"]
        assert any("phase 2: no room" in notice for notice in notices)
        archived = jobs.snapshot(handle, result["checkpoint"]).read_text("archive/phase_002.md")
        assert "The notes on the todos above." in archived or "No notes were made" in archived


async def test_seconds_count_without_the_time_people_take(temporal: Client, root: Root) -> None:
    # Time in the `wait` tool counts, and the wait is cut short.
    async with serving(temporal, root, at_todo(phase=2, number=1, model=Short())) as jobs:
        handle = await jobs.start(job())
        begun = await jobs.until(handle, waits_until=bool)
        await handle.signal("limit", {"seconds": 1})
        status = await jobs.until(handle, waiting_for="budget")
        spent = status["limits"]["job"]["seconds"]["spent"]
        assert spent >= 1
        await asyncio.sleep(2)
        waited = (await query_status(handle))["limits"]["job"]["seconds"]["spent"]
        assert waited == spent
        await handle.signal("limit", {"seconds": 1000})
        status = await jobs.until(handle, waiting_for=None)
        assert status["waits_until"] == begun["waits_until"]
        await handle.terminate()


async def test_the_time_in_which_a_person_is_shown_the_folder_is_theirs(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = job_folder.update_job_folder

    def slowly(*given: Any, **more: Any) -> Any:
        time.sleep(1)
        return shown(*given, **more)

    monkeypatch.setattr(show_folder, "update_job_folder", slowly)
    handle = await jobs.start(job(set={"limits.job": {"model_calls": 1, "seconds": 1000}}))
    limits = (await jobs.until(handle, waiting_for="budget"))["limits"]
    await asyncio.sleep(2)
    assert (await query_status(handle))["limits"] == limits
    await handle.terminate()


NONSENSE: list[Any] = [
    (),
    ({},),
    ("20",),
    ({"cost": "20"},),
    ({"cost": True},),
    ({"cost": -1},),
    ({"tokens": 0},),
    ({"tokens": 1.5},),
    ({"phase": 3},),
    ({"phase": {"phase": {"cost": 2}}},),
    ({"cost": 20, "money": 1},),
    ({"cost": 20}, {"cost": 30}),
]


async def test_nonsense_is_refused_visibly_and_changes_nothing(jobs: Jobs) -> None:
    handle = await jobs.start(charged(limits__job__model_calls=2))
    status = await jobs.until(handle, waiting_for="budget")
    for values in NONSENSE:
        await handle.signal("limit", args=list(values))
    after = await jobs.until(handle, refusals=len(NONSENSE))
    assert after["limits"] == status["limits"]
    assert after["waiting"] == status["waiting"]
    assert sum("signal limit" in notice for notice in after["notices"]) == len(NONSENSE)
    await handle.terminate()


async def test_time_spent_waiting_for_people_does_not_count(temporal: Client, root: Root) -> None:
    async def paused() -> float:
        """Return for how long it was not at work since it began."""
        await handle.signal("pause", {})
        status = await jobs.until(handle, waiting_for="paused")
        spent: float = status["limits"]["job"]["seconds"]["spent"]
        return time.monotonic() - begun - spent

    begun = time.monotonic()
    async with serving(temporal, root, at_todo(phase=2, number=1, model=Short())) as jobs:
        handle = await jobs.start(job(set={"limits.job.seconds": 1000}))
        before = await paused()
        await asyncio.sleep(2)
        await handle.signal("resume", {})
        await jobs.until(handle, waiting_for=None)
        assert await paused() - before >= 2
        await handle.signal("cancel", {})
