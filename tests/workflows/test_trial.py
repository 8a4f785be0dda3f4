"""A trial runs jobs under several configurations and records how each ended."""

from collections import Counter
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from tests.workflows.serving import serving
from tests.workflows.short import Short, job

FEW = {"set": {"limits.job.model_calls": 2}}


def trial(**changed: Any) -> dict[str, Any]:
    """Return a trial of a configuration that completes and another whose limit is too low."""
    configurations = {"now": {}, "few": FEW}
    base = {"start": job(), "configurations": configurations, "runs": 2, "seconds": 15}
    return {**base, **changed}


async def test_configuration_with_too_few_calls_does_not_complete(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(trial(parallel=4), kind="Trial")
        runs = (await jobs.result(handle))["runs"]
    assert [run["configuration"] for run in runs] == ["now", "few", "now", "few"]
    assert [run["job"] for run in runs[:2]] == [f"{handle.id}-now-01", f"{handle.id}-few-01"]
    assert [run["status"] for run in runs] == ["completed", "late", "completed", "late"]
    assert runs[0]["usage"]["model_calls"] > 2
    assert "15 s" in runs[1]["reason"]


async def test_time_of_the_trial_ends_runs_at_work(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Short()) as jobs:
        changed = trial(configurations={"few": FEW, "fewer": FEW}, parallel=2, seconds=600)
        handle = await jobs.start({**changed, "limits": {"seconds": 8}}, kind="Trial")
        result = await jobs.result(handle)
    words = [run["status"] for run in result["runs"]]
    assert words == ["cut", "cut", "unstarted", "unstarted"]
    assert result["reached"] == "the trial's limit of 8 seconds was reached"
    assert result["runs"][0]["waiting"] == "budget"


async def test_run_that_waits_too_long_for_a_person_is_ended(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Short()) as jobs:
        changed = trial(configurations={"few": FEW, "now": {}}, runs=1, seconds=600)
        handle = await jobs.start({**changed, "limits": {"wait": 1}}, kind="Trial")
        few, now = (await jobs.result(handle))["runs"]
        status = await temporal.get_workflow_handle(few["job"]).query("status")
    ended = "its trial ended it: it waited 1 s for a person (budget)"
    assert status["result"]["summary"] == f"cancelled through Temporal: {ended}"
    assert (few["status"], few["waiting"]) == ("late", "budget")
    assert few["reason"] == "it waited 1 s for a person (budget)"
    assert (now["status"], now["waiting"]) == ("completed", "")


async def test_cancelled_trial_cancels_its_jobs_and_keeps_what_ended(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(trial(parallel=2, seconds=600), kind="Trial")
        await jobs.until(handle, runs=lambda runs: any(r["status"] == "completed" for r in runs))
        await handle.cancel()
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
        runs = (await handle.query("status"))["runs"]
    counts = Counter(run["status"] for run in runs)
    assert counts["completed"] >= 1
    assert counts["cancelled"] >= 1
    assert counts["running"] == 0


async def test_signal_cancels_it_and_the_result_has_what_ended(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(trial(parallel=2, seconds=600), kind="Trial")
        await jobs.until(handle, runs=lambda runs: any(r["status"] == "completed" for r in runs))
        await handle.signal("cancel", {"reason": "enough", "by": "ada@host"})
        result = await jobs.result(handle)
    assert {"completed", "cancelled"} <= {run["status"] for run in result["runs"]} <= {
        "completed", "cancelled", "unstarted",
    }  # fmt: skip
    assert result["status"] == "cancelled"
    assert result["cancellation"] == "the trial was cancelled by ada@host: enough"


async def test_run_that_a_person_cancels_has_no_reason_beside_its_state(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        changed = trial(configurations={"few": FEW, "now": {}}, runs=1, seconds=600)
        handle = await jobs.start(changed, kind="Trial")
        status = await jobs.until(handle, runs=lambda runs: runs[0]["waiting"])
        await temporal.get_workflow_handle(status["runs"][0]["job"]).signal("cancel", {})
        few, now = (await jobs.result(handle))["runs"]
    assert (few["status"], few["reason"]) == ("cancelled", "")
    assert now["status"] == "completed"


async def test_forks_of_a_phase_run_under_each_configuration(temporal: Client, root: Root) -> None:
    async with serving(temporal, root, Short()) as jobs:
        first = await jobs.start(job(set={"todos.fork": ["Rethink the plan", "Hand over"]}))
        before = await jobs.result(first)
        start = {"fork": {"job": first.id, "phase": 2}}
        configurations = {"now": {}, "black": {"instructions": "Only black tea."}}
        changed = trial(start=start, configurations=configurations, runs=1, seconds=60)
        handle = await jobs.start(changed, kind="Trial")
        runs = (await jobs.result(handle))["runs"]
        texts = []
        for run in runs:
            fork = jobs.client.get_workflow_handle(run["job"])
            snapshot = jobs.snapshot(fork, (await fork.query("status"))["checkpoint"])
            texts.append(snapshot.read_text("instructions.md"))
        origin = jobs.snapshot(first, before["checkpoint"]).read_text("instructions.md")
    assert [run["status"] for run in runs] == ["completed", "completed"]
    assert ["Only black tea." in text for text in [origin, *texts]] == [False, False, True]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"configurations": {"now": {}}}, "configurations"),
        ({"runs": 0}, "runs"),
        ({"runs": 100, "configurations": {"a": {}, "b": {}, "c": {}}}, "300 jobs in all"),
        ({"configurations": {"a b": {}, "c": {}}}, "'a b': expected letters and digits"),
        ({"start": {}}, "agent"),
        ({"limits": {"calls": 3}}, "calls"),
    ],
)
async def test_invalid_trial_is_refused_with_the_reason(
    temporal: Client, root: Root, changed: dict[str, Any], message: str
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(trial(**changed), kind="Trial")
        with pytest.raises(WorkflowFailureError) as refused:
            await jobs.result(handle)
    assert message in str(refused.value.cause)
