"""Limits of a whole trial are kept exactly: each run has a share of them before it calls."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHistory

from activities.checkpoints import Root
from tests.soak import soak
from tests.workflows.serving import Jobs, serving
from tests.workflows.trial_limits import (
    RUN_CALLS,
    CountingModel,
    limited_trial,
    run_trial_with_waiting_run,
    used_amount,
)

RUNS = soak(2, 4)
"""Runs of each configuration of a trial that has room for all."""


@pytest.fixture(scope="module")
async def usage_of_a_run(
    temporal: Client, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Any]:
    """Return what a run uses that nothing holds up."""
    root = Root.open(tmp_path_factory.mktemp("usage") / "root", create=True)
    async with serving(temporal, root, CountingModel()) as jobs:
        handle = await jobs.start(limited_trial(1, 1), kind="Trial")
        runs = (await jobs.result(handle))["runs"]
    assert [run["status"] for run in runs] == ["completed", "completed"]
    return dict(runs[0]["usage"])


async def usages(jobs: Jobs, runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what the runs say they used, whatever they ended as."""
    handles = [jobs.client.get_workflow_handle(run["job"]) for run in runs]
    return [(await handle.query("status"))["usage"] for handle in handles]


def states_with_share(history: WorkflowHistory, job: str) -> set[str]:
    """Return what the trial's memo said whenever this job was given a share."""
    states, state = set(), ""
    for event in history.events:
        memo = event.workflow_properties_modified_event_attributes.upserted_memo.fields
        if "state" in memo:
            state = json.loads(memo["state"].data)
        signal = event.signal_external_workflow_execution_initiated_event_attributes
        if (signal.signal_name, signal.workflow_execution.workflow_id) == ("share", job):
            states.add(state)
    return states


@pytest.mark.parametrize("key", ["model_calls", "tool_calls", "tokens", "cost"])
async def test_runs_never_use_more_than_the_limit_of_the_trial(
    temporal: Client, root: Root, usage_of_a_run: dict[str, Any], key: str
) -> None:
    model, limit = CountingModel(), 2.5 * used_amount(usage_of_a_run, key)
    async with serving(temporal, root, model) as jobs:
        limit = round(limit, 6) if key == "cost" else int(limit)
        handle = await jobs.start(limited_trial(4, 3, **{key: limit}), kind="Trial")
        result = await jobs.result(handle)
        begun = [run for run in result["runs"] if run["status"] != "unstarted"]
        used = await usages(jobs, begun)
    counts = Counter(run["status"] for run in result["runs"])
    assert set(counts) == {"completed", "cut", "unstarted"}
    # What one run leaves goes to another, so that as many complete as the limit has room for.
    assert counts["completed"] == 2
    reached = f"the trial's limit of {limit:,.10g} {key.replace('_', ' ')} was reached"
    assert result["reached"] == reached
    assert {r["reason"] for r in result["runs"] if r["status"] != "completed"} == {reached}
    total = sum(used_amount(usage, key) for usage in used)
    assert total <= limit
    if key == "model_calls":
        assert model.calls == total >= limit - 1
    # No run is treated differently for the want of a share.
    completed = [run["usage"] for run in begun if run["status"] == "completed"]
    assert {used_amount(usage, "model_calls") for usage in completed} == {
        completed[0]["model_calls"]
    }


async def test_trial_with_room_for_all_runs_completes_them(
    temporal: Client, root: Root, usage_of_a_run: dict[str, Any]
) -> None:
    model, each = CountingModel(), usage_of_a_run["model_calls"]
    async with serving(temporal, root, model) as jobs:
        limited = limited_trial(RUNS, 3, model_calls=2 * RUNS * each)
        result = await jobs.result(await jobs.start(limited, kind="Trial"))
    assert [run["status"] for run in result["runs"]] == ["completed"] * 2 * RUNS
    assert (result["reached"], model.calls) == ("", 2 * RUNS * each)


async def test_limit_below_what_any_run_needs_ends_the_trial(temporal: Client, root: Root) -> None:
    model = CountingModel()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(limited_trial(1, 2, tokens=500), kind="Trial")
        result = await jobs.result(handle)
    reached = "the trial's limit of 500 tokens was reached"
    assert [run["status"] for run in result["runs"]] == ["unstarted", "unstarted"]
    assert {run["reason"] for run in result["runs"]} == {result["reached"]} == {reached}
    assert model.calls == 0


async def test_raised_limit_lets_runs_go_on_that_wait_for_a_share(
    temporal: Client, root: Root, usage_of_a_run: dict[str, Any]
) -> None:
    each = usage_of_a_run["model_calls"]
    async with serving(temporal, root, CountingModel()) as jobs:
        handle = await jobs.start(limited_trial(1, 2, model_calls=each), kind="Trial")
        await handle.signal("pause", {"by": "ada@host"})
        paused = await jobs.until(handle, waiting=lambda waiting: waiting["reason"] == "paused")
        assert paused["waiting"]["message"] == "Paused by ada@host."
        await handle.signal("limit", {"model_calls": 2 * each, "by": "ada@host"})
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert [run["status"] for run in result["runs"]] == ["completed", "completed"]
    assert result["start"]["limits"]["model_calls"] == 2 * each
    assert result["notices"] == [f"ada@host set limits of the trial: model calls {2 * each}"]


async def test_run_that_waits_for_a_person_leaves_its_share_and_gets_it_again(
    temporal: Client, root: Root
) -> None:
    model = CountingModel()
    async with serving(temporal, root, model) as jobs:
        handle = await run_trial_with_waiting_run(jobs)
        history = await handle.fetch_history()
    assert model.calls == 2 * RUN_CALLS
    assert states_with_share(history, f"{handle.id}-now-01") == {
        "0 of 2 runs ended, 2 running (1 waiting for a person)"
    }


async def test_runs_that_wait_for_the_same_rest_do_not_both_begin(
    temporal: Client, root: Root
) -> None:
    model = CountingModel()
    async with serving(temporal, root, model) as jobs:
        # Enough for the first calls of one run.
        handle = await jobs.start(limited_trial(1, 2, model_calls=3), kind="Trial")
        result = await jobs.result(handle)
    assert [run["status"] for run in result["runs"]] == ["cut", "unstarted"]
    assert model.calls <= 3


async def test_signals_that_come_with_the_start_are_taken(temporal: Client, root: Root) -> None:
    queue = "trial-signals-first"
    handle = await Jobs(temporal, root, queue).start(
        limited_trial(1, 2, model_calls=2), kind="Trial"
    )
    await handle.signal("pause", {})
    await handle.signal("limit", {"model_calls": 100})
    async with serving(temporal, root, CountingModel(), queue=queue) as jobs:
        status = await jobs.until(handle, waiting=lambda waiting: waiting["reason"] == "paused")
        assert status["start"]["limits"]["model_calls"] == 100
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert [run["status"] for run in result["runs"]] == ["completed", "completed"]


async def test_lowered_limit_ends_the_trial_sooner(
    temporal: Client, root: Root, usage_of_a_run: dict[str, Any]
) -> None:
    each = usage_of_a_run["model_calls"]
    async with serving(temporal, root, CountingModel()) as jobs:
        handle = await jobs.start(limited_trial(4, 2, model_calls=100 * each), kind="Trial")
        await handle.signal("limit", {"model_calls": each})
        result = await jobs.result(handle)
        begun = [run for run in result["runs"] if run["status"] != "unstarted"]
        used = await usages(jobs, begun)
    assert {run["status"] for run in result["runs"]} <= {"completed", "cut", "unstarted"}
    assert result["reached"] == f"the trial's limit of {each} model calls was reached"
    assert sum(usage["model_calls"] for usage in used) < 8 * each


async def test_paused_trial_halts_its_runs_and_begins_none(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, CountingModel()) as jobs:
        handle = await jobs.start(limited_trial(2, 2, seconds=40), kind="Trial")
        await jobs.until(handle, runs=lambda runs: any(r["status"] == "running" for r in runs))
        await handle.signal("pause", {})
        status = await jobs.until(handle, runs=_running_ones_are_paused)
        begun = [run["job"] for run in status["runs"] if run["status"] != "pending"]
        assert len(begun) < len(status["runs"])
        await handle.signal("pause", {})
        await handle.signal("limit", {"phase": {"tokens": 5}})
        await handle.signal("resume", {"set": {"model.name": "leaf"}})
        status = await jobs.until(handle, notices=lambda notices: len(notices) == 3)
        assert [run["job"] for run in status["runs"] if run["status"] != "pending"] == begun
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert {run["status"] for run in result["runs"]} == {"completed"}
    assert result["notices"] == [
        "refused: signal pause: the trial is paused already",
        'refused: signal limit: a trial has no phases; try {"tokens": 90000}',
        "refused: signal resume: set: a trial's configurations stay as they are",
    ]


def _running_ones_are_paused(runs: list[dict[str, Any]]) -> bool:
    running = [run for run in runs if run["status"] == "running"]
    return bool(running) and all(run["waiting"] == "paused" for run in running)
