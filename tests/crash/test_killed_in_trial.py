"""`kill -9` of the worker in the middle of a trial: its table is complete, no run is paid twice."""

import asyncio
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Root
from rehearsal import Answer, Request
from rehearsal.server import ModelServer
from tests.crash.model import LEDGER, Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.soak import soak

QUEUE = "killed-trial"
RUNS = soak(1, 2)
PARALLEL = 2
LEDGERS = {"ada": Ledger("Ada"), "ben": Ledger("Ben")}
PATIENCE = 180
"""Seconds."""
DELAY = 0.1
"""Seconds of a model call."""


class CountingModel:
    """Keeps the ledgers, and counts how often each request arrives."""

    def __init__(self) -> None:
        self.requests: Counter[str] = Counter()
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        text = str(request["messages"])
        with self._lock:
            self.requests[text] += 1
        return next(each for each in LEDGERS.values() if each.name in text)(request)


def trial_start() -> dict[str, Any]:
    """Two configurations, each with a ledger of its own, so that their requests differ."""
    starts = {name: ledger.start() for name, ledger in LEDGERS.items()}
    return {
        "start": {"agent": "generalist"},
        "configurations": {
            name: {"instructions": start["instructions"], "set": start["set"]}
            for name, start in starts.items()
        },
        "runs": RUNS,
        "parallel": PARALLEL,
        "seconds": PATIENCE,
        "limits": {"model_calls": 1000},
    }


async def test_trial_goes_on_after_its_worker_was_killed(
    tmp_path: Path, workers: Nursery, temporal: TemporalServer
) -> None:
    root = Root.open(tmp_path / "root", create=True)
    model = CountingModel()
    with ModelServer(model, delay=DELAY) as server:
        client = await temporal.client()
        worker = workers.worker(temporal.address, root.path, QUEUE, server.base_url)
        handle = await client.start_workflow(
            "Trial", trial_start(), id=QUEUE, task_queue=QUEUE, result_type=dict
        )
        # In the midst of the first runs, and of the last ones.
        kills = 0
        for calls in soak([4], [4, 24]):
            await until_called(model, calls)
            worker.kill()
            await asyncio.to_thread(worker.until_gone)
            kills += 1
            worker = workers.worker(temporal.address, root.path, QUEUE, server.base_url)
        result = await asyncio.wait_for(handle.result(), PATIENCE)
        worker.kill()
    runs = result["runs"]
    assert [run["status"] for run in runs] == ["completed"] * RUNS * len(LEDGERS)
    assert len({run["job"] for run in runs}) == len(runs)
    assert all(run["usage"]["model_calls"] > 0 for run in runs)
    for run in runs:
        written = (root.workspace(run["job"]) / LEDGER).read_text()
        assert written == LEDGERS[run["configuration"]].text
    # All runs of a configuration send the same requests. Only calls in flight are sent again.
    assert set(model.requests.values()) <= set(range(RUNS, RUNS + kills * PARALLEL + 1))
    repeated = model.requests.total() - RUNS * len(model.requests)
    assert repeated <= kills * PARALLEL
    assert sum(run["usage"]["model_calls"] for run in runs) == RUNS * len(model.requests)


@pytest.mark.skipif(not soak(0, 1), reason="with many repetitions: LONGHAUL_SOAK=1")
async def test_limit_of_a_trial_is_kept_although_its_worker_was_killed(
    tmp_path: Path, workers: Nursery, temporal: TemporalServer
) -> None:
    root, queue, limit = Root.open(tmp_path / "root", create=True), "limited-trial", 40
    model, kills = CountingModel(), 0
    start = {**trial_start(), "limits": {"model_calls": limit}}
    with ModelServer(model, delay=DELAY) as server:
        client = await temporal.client()
        worker = workers.worker(temporal.address, root.path, queue, server.base_url)
        handle = await client.start_workflow(
            "Trial", start, id=queue, task_queue=queue, result_type=dict
        )
        for calls in (4, 18, 30):
            await until_called(model, calls)
            worker.kill()
            await asyncio.to_thread(worker.until_gone)
            kills += 1
            worker = workers.worker(temporal.address, root.path, queue, server.base_url)
        result = await asyncio.wait_for(handle.result(), PATIENCE)
        begun = [run["job"] for run in result["runs"] if run["status"] != "unstarted"]
        used = [
            (await client.get_workflow_handle(job).query("status"))["usage"]["model_calls"]
            for job in begun
        ]
        worker.kill()
    assert {"completed", "cut"} <= {run["status"] for run in result["runs"]}
    assert limit - 1 <= sum(used) <= limit
    assert model.requests.total() <= limit + kills * PARALLEL


async def until_called(model: CountingModel, calls: int) -> None:
    """Return once the model has been called so often."""
    end = time.monotonic() + PATIENCE
    while model.requests.total() < calls:
        assert time.monotonic() < end, f"only {model.requests.total()} model calls"
        await asyncio.sleep(0.01)
