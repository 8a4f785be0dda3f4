"""`list` with many jobs, on its own server: its cost, and that each job appears once."""

import asyncio
import json
import time
import tracemalloc
from datetime import timedelta
from typing import Any

import pytest
from temporalio import workflow
from temporalio.client import Client

from engine.development import development_server
from engine.service import build_worker
from tests.soak import patient, soak

JOBS = soak(200, 1000)
MEMO = {
    "title": "Write a guide on tea",
    "agent": "generalist",
    "status": "waiting: storage",
    "phase": "4 tactical",
    "state": "The disk is full. " * 50,
    "began": "soon",
}


@workflow.defn(name="Job")
class Continuing:
    """A job of several runs."""

    @workflow.run
    async def run(self, left: int) -> None:
        began = "2026-01-02T03:04:05+00:00"
        workflow.upsert_memo({"title": f"{left} left", "agent": "generalist", "began": began})
        if left:
            workflow.continue_as_new(left - 1)


async def fill(client: Client) -> None:
    """Start the jobs, which the server closes after a second, and one of four runs."""
    several = asyncio.Semaphore(50)

    async def begin(number: int) -> None:
        async with several:
            await client.start_workflow(
                "Job", {}, id=f"job-{number}", task_queue="nobody-polls", memo=MEMO,
                execution_timeout=timedelta(seconds=1),
            )  # fmt: skip

    await asyncio.gather(*(begin(number) for number in range(JOBS)))
    async with build_worker(client, task_queue="continuing", workflows=[Continuing], activities=[]):
        # Like a job that was reset after it had ended.
        for runs in (0, 3):
            await client.execute_workflow("Job", runs, id="continued", task_queue="continuing")
    query = "ExecutionStatus != 'Running' AND ExecutionStatus != 'ContinuedAsNew'"
    async with asyncio.timeout(60):
        while True:
            if (await client.count_workflows(query)).count > JOBS + 1:
                return
            await asyncio.sleep(0.2)


async def check_older_jobs_are_named(client: Client, ran: Any) -> None:
    """Check that a list that is cut says so, and that an open job is listed alone."""
    await client.start_workflow("Job", {}, id="open", task_queue="nobody-polls", memo=MEMO)
    async with asyncio.timeout(60):
        while True:
            listed = json.loads((await asyncio.to_thread(ran, "--open", "--json")).out)
            if [job["job_id"] for job in listed] == ["open"]:
                break
            await asyncio.sleep(0.1)
    assert "the newest 1; " in (await asyncio.to_thread(ran, "--limit", "1")).err
    [note] = (await asyncio.to_thread(ran, "--open")).err.splitlines()
    assert "no worker has polled the task queue nobody-polls" in note
    assert "1 job cannot go on: open" in note


def test_a_job_is_listed_within_a_millisecond_and_some_kilobytes(
    offline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ran(*arguments: str) -> Any:
        return offline("list", *arguments)

    async def measured() -> None:
        async with development_server(ui=False) as running:
            await fill(running.client)
            monkeypatch.setenv("TEMPORAL_ADDRESS", running.address)
            await asyncio.to_thread(ran, "--limit", "1")
            began = time.process_time()
            table = (await asyncio.to_thread(ran, "--limit", "2000")).out.splitlines()
            seconds = time.process_time() - began
            tracemalloc.start()
            listed = json.loads((await asyncio.to_thread(ran, "--limit", "2000", "--json")).out)
            most = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            newest = json.loads((await asyncio.to_thread(ran, "--json")).out)
            await check_older_jobs_are_named(running.client, ran)
        print(f"{JOBS} jobs: {seconds:.2f} s of CPU, {most / 1e6:.1f} MB")
        assert sorted(job["job_id"] for job in listed) == sorted(
            [*(f"job-{number}" for number in range(JOBS)), "continued"]
        )
        assert {job["status"] for job in listed} == {"failed", "completed"}
        # It began before all others, whenever its last run began.
        assert listed[-1]["title"] == "0 left"
        assert listed[-1]["started"].startswith("2026-01-0")
        assert len(table) == JOBS + 2
        assert {job["job_id"] for job in newest} <= {job["job_id"] for job in listed}
        assert [job["started"] for job in newest] == sorted(
            (job["started"] for job in newest), reverse=True
        )
        assert seconds < patient(JOBS * 1e-3)
        assert most < JOBS * 20e3

    asyncio.run(measured())
