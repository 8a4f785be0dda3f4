"""What a worker process exposes: health, readiness, metrics, logs."""

import asyncio
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from temporalio.client import Client, WorkflowHandle

from engine.development import DevelopmentServer
from engine.free_ports import free_port
from tests.brief import BRIEF
from tests.crash.processes import Nursery
from tests.docs.test_alerts import alert_metrics
from tests.engine.test_worker_process import environment
from tests.receiver import Receiver, receiver

QUEUE = "observed"


@pytest.fixture
def beats() -> Iterator[Receiver]:
    with receiver() as service:
        yield service


async def test_health_metrics_and_logs_of_a_worker_with_a_job(
    running: DevelopmentServer, workers: Nursery, tmp_path: Path, beats: Receiver
) -> None:
    health, metrics = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"
    variables = {
        **environment(running.address, tmp_path / "root"),
        "LONGHAUL_TASK_QUEUE": QUEUE,
        "LONGHAUL_HEALTH": health,
        "LONGHAUL_METRICS": metrics,
        "LONGHAUL_LOG": "DEBUG",
        "LONGHAUL_LOG_FORMAT": "json",
        "LONGHAUL_ALIVE": beats.url,
        "LONGHAUL_ALIVE_SECONDS": "1",
    }
    worker = workers.start(QUEUE, variables)
    try:
        await worker.until_ready()
        async with httpx2.AsyncClient(trust_env=False, timeout=10) as http:
            for path, status in (("healthz", 200), ("readyz", 200), ("other", 404)):
                assert (await http.get(f"http://{health}/{path}")).status_code == status
            await _run_job(running.client)
            # The engine counts a closed workflow shortly after its result is known.
            async with asyncio.timeout(60):
                shown = ""
                while "temporal_workflow_completed" not in shown:
                    await asyncio.sleep(0.1)
                    shown = (await http.get(f"http://{metrics}/metrics")).text
            await _waits_are_counted(running.client, http, metrics)
            # Its workspaces root is gone: not ready, but alive.
            (tmp_path / "root").rename(tmp_path / "moved")
            answer = await http.get(f"http://{health}/readyz")
            assert (answer.status_code, "root" in answer.json()["status"]) == (503, True)
            assert not (tmp_path / "root").exists()
            assert (await http.get(f"http://{health}/healthz")).status_code == 200
            await _beats_stop(beats, _cost(shown))
    finally:
        worker.drain()
        await worker.left()
    assert alert_metrics() <= {re.split(r"[{ ]", line)[0] for line in shown.splitlines()}
    [counted] = [
        line
        for line in shown.splitlines()
        if line.startswith("longhaul_model_calls_total{") and 'activity_type="model_call"' in line
    ]
    assert 'agent="generalist"' in counted
    assert 'model="rehearsal"' in counted
    assert float(counted.split()[-1]) > 10
    lines = [
        json.loads(line) for line in worker.log.read_text().splitlines() if line.startswith("{")
    ]
    assert len(lines) > 10
    # Logged by the client during a model call, in another thread than opened the checkpoint.
    client_lines = [line for line in lines if "openai" in line["logger"]]
    assert all({"job", "phase", "step", "activity"} <= set(line) for line in client_lines)
    assert client_lines


def _cost(shown: str) -> float:
    """Return what the calls of all jobs have cost, by the metrics."""
    lines = [line for line in shown.splitlines() if line.startswith("longhaul_cost_micro_total{")]
    return sum(float(line.split()[-1]) for line in lines) / 1_000_000


async def _beats_stop(service: Receiver, cost: float) -> None:
    """Check that a worker that serves no jobs sends no beat, as those before told that it did."""
    await asyncio.sleep(1.5)
    beats = list(service.bodies)
    assert beats
    assert {beat["task_queue"] for beat in beats} == {QUEUE}
    assert any(beat["running"] for beat in beats)
    # Of the job that was paused a call may be counted as well.
    assert 0.01 < cost <= sum(beat["spend"] for beat in beats) + 0.001 < 1.5 * cost
    await asyncio.sleep(2.5)
    assert service.bodies == beats


async def _waits_are_counted(client: Client, http: httpx2.AsyncClient, metrics: str) -> None:
    """Check that the gauge follows a job that a person pauses and cancels."""
    start = {"agent": "generalist", "instructions": "Write a guide on tea."}
    handle: WorkflowHandle[Any, dict[str, Any]] = await client.start_workflow(
        "Job", start, id=f"{QUEUE}-paused", task_queue=QUEUE, result_type=dict
    )
    await handle.signal("pause", {})
    await _shows(http, metrics, 1)
    await handle.signal("cancel", {})
    await _shows(http, metrics, 0)


async def _shows(http: httpx2.AsyncClient, metrics: str, count: int) -> None:
    async with asyncio.timeout(60):
        while True:
            shown = (await http.get(f"http://{metrics}/metrics")).text
            waiting = [
                line
                for line in shown.splitlines()
                if line.startswith("longhaul_jobs_waiting{")
                and 'reason="paused"' in line
                and 'type="job"' in line
            ]
            if waiting and float(waiting[0].split()[-1]) == count:
                return
            await asyncio.sleep(0.2)


async def _run_job(client: Client) -> None:
    price = {"prompt": 1, "cached": 1, "written": 1, "completion": 1}
    settings = {**BRIEF, "prices.rehearsal": price}
    start = {"agent": "generalist", "instructions": "Write a guide on tea.", "set": settings}
    handle: WorkflowHandle[Any, dict[str, Any]] = await client.start_workflow(
        "Job", start, id=QUEUE, task_queue=QUEUE, result_type=dict
    )
    assert (await asyncio.wait_for(handle.result(), 180))["status"] == "completed"
