"""Limits of a whole trial are kept exactly: each run has an even share of them."""

from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from tests.workflows.queries import notice_texts
from tests.workflows.serving import Jobs, serving
from tests.workflows.trial_limits import RUN_CALLS, CountingModel, limited_trial, used_amount


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


@pytest.mark.parametrize("key", ["model_calls", "tool_calls", "tokens", "cost"])
async def test_runs_have_even_shares_and_never_use_more(
    temporal: Client, root: Root, usage_of_a_run: dict[str, Any], key: str
) -> None:
    model, share = CountingModel(), 0.7 * used_amount(usage_of_a_run, key)
    async with serving(temporal, root, model) as jobs:
        limit = round(4 * share, 6) if key == "cost" else int(4 * share)
        handle = await jobs.start(limited_trial(2, 3, **{key: limit}), kind="Trial")
        result = await jobs.result(handle)
        handles = [jobs.client.get_workflow_handle(run["job"]) for run in result["runs"]]
        used = [(await each.query("status"))["usage"] for each in handles]
    assert [run["status"] for run in result["runs"]] == ["cut"] * 4
    assert {run["reason"] for run in result["runs"]} == {
        "its share of the trial's limits is used up"
    }
    assert max(used_amount(usage, key) for usage in used) <= limit / 4
    if key == "model_calls":
        assert model.calls == sum(used_amount(usage, key) for usage in used) == 4 * int(share)


async def test_runs_that_fit_their_shares_complete(temporal: Client, root: Root) -> None:
    model = CountingModel()
    async with serving(temporal, root, model) as jobs:
        limited = limited_trial(1, 2, model_calls=2 * RUN_CALLS)
        # A limit of the job's own stays if it is lower than the share.
        limited["configurations"] = {"now": {}, "few": {"set": {"limits.job.model_calls": 3}}}
        result = await jobs.result(await jobs.start(limited, kind="Trial"))
    assert [run["status"] for run in result["runs"]] == ["completed", "cut"]
    assert model.calls == RUN_CALLS + 3


async def test_limit_below_what_a_run_needs_is_refused(temporal: Client, root: Root) -> None:
    model = CountingModel()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(limited_trial(1, 2, tokens=500), kind="Trial")
        with pytest.raises(WorkflowFailureError) as refused:
            await jobs.result(handle)
    assert "limits.tokens: 500 for 2 runs is less than the 1,000" in str(refused.value.cause)
    assert model.calls == 0


async def test_changed_limit_is_that_of_runs_that_have_not_begun(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, CountingModel()) as jobs:
        limited = limited_trial(1, 1, model_calls=2 * RUN_CALLS)
        handle = await jobs.start(limited, kind="Trial")
        await handle.signal("pause", {"by": "ada@host"})
        paused = await jobs.until(handle, waiting=lambda waiting: waiting["reason"] == "paused")
        assert paused["waiting"]["message"] == "Paused by ada@host."
        await handle.signal("limit", {"model_calls": 3, "by": "ada@host"})
        await handle.signal("limit", {"model_calls": 4, "by": "ada@host"})
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert result["runs"][-1]["status"] == "cut"
    assert result["start"]["limits"]["model_calls"] == 4
    # A pause is told once the runs at work have it, which others may come before.
    words = ("paused the", "refused:", "set limits", "let the")
    told = notice_texts(result)
    paused_at, refused, raised, resumed = (
        next(text for text in told if word in text) for word in words
    )
    assert len(told) == len(words)
    assert paused_at.startswith("ada@host paused the trial at ")
    assert refused == (
        "refused: signal limit: limits.model_calls: 3 for 2 runs is less than the 2 that each "
        "needs at least; raise it, or have fewer runs (sent by ada@host)"
    )
    assert raised.startswith("ada@host set limits at ")
    assert raised.endswith(" UTC: model_calls=4")
    assert resumed.startswith("A person let the trial go on at ")


async def test_signals_that_come_with_the_start_are_taken(temporal: Client, root: Root) -> None:
    queue = "trial-signals-first"
    handle = await Jobs(temporal, root, queue).start(
        limited_trial(1, 2, model_calls=4), kind="Trial"
    )
    await handle.signal("pause", {})
    await handle.signal("limit", {"model_calls": 100})
    async with serving(temporal, root, CountingModel(), queue=queue) as jobs:
        status = await jobs.until(handle, waiting=lambda waiting: waiting["reason"] == "paused")
        assert status["start"]["limits"]["model_calls"] == 100
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert [run["status"] for run in result["runs"]] == ["completed", "completed"]


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
        status = await jobs.until(handle, notices=lambda notices: len(notices) == 4)
        assert [run["job"] for run in status["runs"] if run["status"] != "pending"] == begun
        await handle.signal("resume", {})
        result = await jobs.result(handle)
    assert {run["status"] for run in result["runs"]} == {"completed"}
    assert notice_texts(result)[1:4] == [
        "refused: signal pause: the trial is paused already",
        'refused: signal limit: a trial has no phases; try {"tokens": 90000}',
        "refused: signal resume: set: a trial's configurations stay as they are",
    ]


def _running_ones_are_paused(runs: list[dict[str, Any]]) -> bool:
    running = [run for run in runs if run["status"] == "running"]
    return bool(running) and all(run["waiting"] == "paused" for run in running)
