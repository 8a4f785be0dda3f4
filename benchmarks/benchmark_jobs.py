"""The workloads: jobs with a model that costs nothing."""

import asyncio
import resource
import time
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from temporalio.client import Client, WorkflowHandle, WorkflowHistory
from temporalio.worker import Replayer

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root, open_checkpoints
from benchmarks.histories import HistorySteps, history_steps, workflow_histories
from benchmarks.zero_cost import ZeroCost
from benchmarks.zero_cost_transport import ZeroCostTransport, zero_cost_client
from engine.converter import DATA_CONVERTER
from engine.service import build_worker
from engine.workflow_runner import JobWorkflowRunner
from workflows.job import Job

APPENDS = 100
"""Appends per file, so that steps are measured and not a growing file."""
Handle = WorkflowHandle[Any, dict[str, Any]]


@dataclass(frozen=True)
class JobRun:
    steps: HistorySteps
    runs: int
    store_bytes: float
    """Disk bytes per step, after packing."""
    unpacked_bytes: float
    """Disk bytes per step within the phase, in the journal."""
    prefix: float
    cpu: list[float]
    """CPU milliseconds of this process between requests."""
    megabytes: float
    """Peak memory of this process, which is both Temporal client and worker."""
    replay_seconds: float
    """Replay time of the longest run, which is the delay of a resume."""

    @property
    def first_tenth_cpu(self) -> float:
        """Median of the first steps, unaffected by starts and ends of runs."""
        return median(self.cpu[: max(1, len(self.cpu) // 10)])

    @property
    def last_tenth_cpu(self) -> float:
        return median(self.cpu[-max(1, len(self.cpu) // 10) :])


async def run_benchmark_job(
    temporal: Client,
    root: Root,
    count: int,
    *,
    files: Callable[[Path], None] | None = None,
    watched: bool = False,
    appends: int = APPENDS,
) -> JobRun:
    """Run a `generalist` with one tactical phase of `count` model calls, a file tool in each.

    Args:
        files: Fills the workspace's folder before the phase, while the job is paused.
        watched: Measure the disk within the phase, at the expense of the step times.
        appends: Appends per file; 0 appends everything to one.
    """
    model = ZeroCost(steps=count, appends=appends)
    async with serve_benchmark_jobs(temporal, root, model) as (queue, endpoint):
        handle = await temporal.start_workflow(
            "Job", benchmark_job_start(count), id=queue, task_queue=queue, result_type=dict
        )
        if files is not None:
            await handle.signal("pause", {})
            await _poll_benchmark_job(handle, lambda now: now["waiting_for"] == "paused")
            await asyncio.to_thread(files, root.workspace(queue))
            await handle.signal("resume", {})
        # Queries cost the worker time, so only an untimed run is watched.
        unpacked = (
            await _unpacked_benchmark_job_bytes(handle, root.repository(queue), count)
            if watched
            else 0.0
        )
        await handle.result()
    runs = await workflow_histories(temporal, queue)
    tactical = history_steps(runs, "model_call")
    checkpoints = open_checkpoints(root, queue)
    # Wait for a packing that may still be running.
    checkpoints.pack(wait=60)
    return JobRun(
        steps=tactical,
        runs=len(runs),
        store_bytes=_disk_bytes(checkpoints.path / "objects") / count,
        unpacked_bytes=unpacked,
        prefix=endpoint.prefixes.share,
        cpu=[1000 * (after - before) for before, after in pairwise(endpoint.cpu)],
        megabytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        replay_seconds=await _replay_seconds(WorkflowHistory(queue, max(runs, key=len))),
    )


async def _replay_seconds(history: WorkflowHistory) -> float:
    """The time that a worker without a cache takes to replay the history."""
    begun = time.perf_counter()
    await Replayer(
        workflows=[Job], data_converter=DATA_CONVERTER, workflow_runner=JobWorkflowRunner()
    ).replay_workflow(history)
    return time.perf_counter() - begun


@asynccontextmanager
async def serve_benchmark_jobs(
    temporal: Client, root: Root, model: ZeroCost, delay: float = 0.0, **options: Any
) -> AsyncIterator[tuple[str, ZeroCostTransport]]:
    """Run a worker with this model; yield its task queue. `options` are those of the worker."""
    queue = f"job-{uuid.uuid4().hex[:8]}"
    openai, transport = zero_cost_client(model, delay)
    async with build_worker(
        temporal,
        root=root,
        task_queue=queue,
        activities=all_activities(root, connect=lambda _: openai),
        **options,
    ):
        yield queue, transport


async def _poll_benchmark_job(handle: Handle, condition: Callable[[dict[str, Any]], bool]) -> None:
    while True:
        if condition(await handle.query("status")):
            return
        await asyncio.sleep(0.1)


async def _unpacked_benchmark_job_bytes(handle: Handle, repository: Path, count: int) -> float:
    """Return disk bytes per step while the phase runs and nothing is packed yet."""
    journal = repository / "journal"
    await _poll_benchmark_job(
        handle, lambda now: bool(now["phase"]) and now["phase"]["number"] >= 2
    )
    first, before = (await handle.query("status"))["step"], _disk_bytes(journal)
    await _poll_benchmark_job(
        handle, lambda now: now["step"] >= first + count // 2 or bool(now["result"])
    )
    now = await handle.query("status")
    passed = now["step"] - first
    return (
        (_disk_bytes(journal) - before) / passed if passed and now["phase"]["number"] == 2 else 0.0
    )


def _disk_bytes(folder: Path) -> int:
    """Return bytes on disk, in whole blocks."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def benchmark_job_start(count: int = 1000) -> dict[str, Any]:
    """Return the start of a job with so many model calls in its tactical phase."""
    return {
        "agent": "generalist",
        "instructions": "Keep a log.",
        "set": {
            # Its model judges nothing.
            "review": None,
            "limits.phase.model_calls": count + 50,
            "limits.job.model_calls": count + 100,
            # The benchmark needs todos of any length.
            "stuck.no_todo.then": count + 100,
        },
    }
