"""Trials that need more than their limits allow, on a model that counts what it is asked."""

from __future__ import annotations

import threading
from typing import Any

from temporalio.client import WorkflowHandle

from rehearsal.wire import Answer, Request
from tests.workflows.serving import Jobs
from tests.workflows.short import DONE, Short, hand_over, job

TODOS = 3
RUN_CALLS = 5
"""Model calls of a run that nothing holds up."""
PRICES = {"rehearsal": {"prompt": 100, "cached": 80, "completion": 400}}
MODEL = {"model.name": "rehearsal", "model.max_output_tokens": 100, "prices": PRICES}


class CountingModel:
    """A short job with more todos, and the number of calls that arrived."""

    def __init__(self) -> None:
        self.calls = 0
        self._short = Short({"Hand": [hand_over(*[{}] * TODOS), DONE]})
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.calls += 1
        return self._short(request)


def limited_trial(runs: int, parallel: int, **limits: Any) -> dict[str, Any]:
    """Return a trial of two equal configurations with these limits."""
    return {
        "start": job(set=MODEL),
        "configurations": {"now": {}, "same": {}},
        "runs": runs,
        "parallel": parallel,
        "seconds": 100,
        "limits": limits,
    }


async def run_trial_with_waiting_run(
    jobs: Jobs, **details: Any
) -> WorkflowHandle[Any, dict[str, Any]]:
    """Run a trial whose first run waits for a person until the second, which needs of its share
    as well, has completed; then there is room for it again.
    """
    few = {"set": {"limits.job.model_calls": 2}}
    trial = limited_trial(1, 2, model_calls=2 * RUN_CALLS - 2)
    trial |= {"configurations": {"few": few, "now": {}}, "seconds": 600}
    handle = await jobs.start(trial, kind="Trial", **details)
    status = await jobs.until(handle, runs=lambda runs: runs[1]["status"] == "completed")
    waiting = status["runs"][0]
    assert (waiting["waiting"], waiting["share"]) == ("budget", {"model_calls": 2})
    await handle.signal("limit", {"model_calls": 2 * RUN_CALLS})
    await jobs.client.get_workflow_handle(waiting["job"]).signal("limit", {"model_calls": 100})
    result = await jobs.result(handle)
    assert [run["status"] for run in result["runs"]] == ["completed", "completed"]
    return handle


def used_amount(usage: dict[str, Any], key: str) -> float:
    """Return what a run used of the limit with this key."""
    if key == "tokens":
        return float(usage["prompt_tokens"] + usage["completion_tokens"])
    return float(usage[key])
