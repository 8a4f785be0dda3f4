"""`python -m benchmarks.worker_throughput`: one worker process beside the bare engine, and several.

The model takes no time. Server, model and workers share the machine, so it also prints what a step
costs each of them in processor time. Their sum limits the steps of a machine with few cores.

`--share 0.2` gives each worker process a fifth of a core, as a container's limit would. So many
processes can be compared with one on a machine that has no core for each of them: what they lose
then, they lose to each other and not to the machine.
"""

import argparse
import asyncio
import os
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import httpx2

from benchmarks.bare_engine import Bare
from benchmarks.benchmark_jobs import benchmark_job_start
from benchmarks.latent_model import count_latent_model_calls
from benchmarks.option_values import parse_positive_number, parse_whole_number
from benchmarks.process_usage import (
    child_process_ids,
    limited_process_cpu,
    process_cpu_seconds,
    process_name,
    python_process,
)
from benchmarks.scale import SETTLED
from engine.development import development_server
from engine.free_ports import free_port

JOBS = 20
BARE_STEPS = 3000
"""More than a window has."""
SETTLING_SECONDS = 2
WINDOW_SECONDS = 12
READY_SECONDS = 120


@dataclass(frozen=True)
class ProcessRate:
    """Steps a second, and milliseconds of processor time a step."""

    steps: float
    workers: list[float]
    """Of each process of the worker, the supervisor included."""
    server: float
    model: float

    @property
    def line(self) -> str:
        workers = ", ".join(f"{cost:.1f}" for cost in self.workers)
        total = sum(self.workers) + self.server + self.model
        return (
            f"{self.steps:.1f} steps a second; a step costs {total:.1f} ms: worker {workers}, "
            f"server {self.server:.1f}, model {self.model:.1f}"
        )


async def measure_bare_rate(share: float | None) -> ProcessRate:
    """Measure `JOBS` bare workflows on one process, with a share of a core if given."""
    queue = f"bare-{uuid.uuid4().hex[:8]}"
    async with development_server(ui=False) as temporal:
        environment = {"TEMPORAL_ADDRESS": temporal.address, "LONGHAUL_TASK_QUEUE": queue}
        async with python_process(["-m", "benchmarks.bare_worker"], environment) as (worker, _):
            workflows = [
                await temporal.client.start_workflow(
                    Bare.run, args=[BARE_STEPS, False], id=f"{queue}-{n}", task_queue=queue
                )
                for n in range(JOBS)
            ]

            async def count_steps() -> int:
                return sum(
                    await asyncio.gather(*(each.query(Bare.count_steps) for each in workflows))
                )

            while await count_steps() < SETTLED * JOBS:  # noqa: ASYNC110 - it counts
                await asyncio.sleep(0.5)
            return await _measure_window(count_steps, [worker], [worker], [], share)


async def measure_process_rate(processes: int, share: float | None) -> ProcessRate:
    """Measure `JOBS` jobs on this many worker processes, each with a share of a core if given."""
    queue = f"processes-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as folder:
        async with (
            development_server(ui=False) as temporal,
            python_process(["-m", "benchmarks.latent_model", "--delay", "0.001"], {}) as (
                model,
                line,
            ),
        ):
            endpoint, health = line.split()[-1], f"127.0.0.1:{free_port()}"
            environment = {
                "TEMPORAL_ADDRESS": temporal.address,
                "LONGHAUL_TASK_QUEUE": queue,
                "LONGHAUL_WORKSPACES": str(Path(folder) / "root"),
                "LONGHAUL_HEALTH": health,
                "OPENAI_BASE_URL": endpoint,
                "OPENAI_API_KEY": "none",
            }
            arguments = ["worker.py", "--processes", str(processes)]
            async with python_process(arguments, environment) as (worker, _):
                await _wait_until_ready(health)
                for n in range(JOBS):
                    await temporal.client.start_workflow(
                        "Job", benchmark_job_start(), id=f"{queue}-{n}", task_queue=queue
                    )
                count_steps = partial(count_latent_model_calls, endpoint)
                while await count_steps() < SETTLED * JOBS:  # noqa: ASYNC110 - it counts
                    await asyncio.sleep(0.5)
                children = child_process_ids(worker)
                return await _measure_window(
                    count_steps, [worker, *children], children or [worker], [model], share
                )


async def _wait_until_ready(health: str) -> None:
    """Wait until every process polls: jobs stay at the process that took their first task."""
    async with asyncio.timeout(READY_SECONDS), httpx2.AsyncClient() as client:
        while True:
            with suppress(httpx2.TransportError):
                if (await client.get(f"http://{health}/readyz")).status_code == 200:
                    return
            await asyncio.sleep(0.2)


async def _measure_window(
    count_steps: Callable[[], Awaitable[int]],
    workers: list[int],
    limited: list[int],
    models: list[int],
    share: float | None,
) -> ProcessRate:
    """Count steps and processor time for `WINDOW_SECONDS`.

    Args:
        workers: Ids of the worker's processes.
        limited: Those of them that get a share of a core.
        models: Ids of processes that answer in place of a model.
    """
    [server] = [pid for pid in child_process_ids(os.getpid()) if process_name(pid) == "temporal"]
    measured = [*workers, server, *models]
    with ExitStack() as limits:
        if share is not None:
            for pid in limited:
                limits.enter_context(limited_process_cpu(pid, share))
        await asyncio.sleep(SETTLING_SECONDS)
        begun, counted = time.monotonic(), await count_steps()
        before = [process_cpu_seconds(pid) for pid in measured]
        await asyncio.sleep(WINDOW_SECONDS)
        steps, seconds = await count_steps() - counted, time.monotonic() - begun
        costs = [
            1000 * (process_cpu_seconds(pid) - earlier) / steps
            for pid, earlier in zip(measured, before, strict=True)
        ]
    split = len(workers)
    return ProcessRate(steps / seconds, costs[:split], costs[split], sum(costs[split + 1 :]))


async def compare_worker_throughput(processes: int, share: float | None, rounds: int) -> None:
    """Print the rates of the bare engine, one process and this many, several times."""
    for _ in range(rounds):
        bare = await measure_bare_rate(share)
        print(f"bare engine: {bare.line}", flush=True)
        single = await measure_process_rate(1, share)
        print(f"one process: {single.line}")
        print(f"  {single.steps / bare.steps:.2f} times the steps of the bare engine", flush=True)
        several = await measure_process_rate(processes, share)
        print(f"{processes} processes: {several.line}")
        print(f"  {several.steps / single.steps:.2f} times the steps of one", flush=True)


def benchmark_worker_throughput() -> None:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.worker_throughput", description=__doc__, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    for name, type_, default, text in (
        ("--processes", parse_whole_number, 2, "worker processes to compare with one"),
        ("--share", parse_positive_number, None, "share of a core for each worker process"),
        ("--rounds", parse_whole_number, 2, "number of measurements"),
    ):
        options.add_argument(name, type=type_, default=default, help=text)
    arguments = options.parse_args()
    asyncio.run(compare_worker_throughput(arguments.processes, arguments.share, arguments.rounds))


if __name__ == "__main__":
    benchmark_worker_throughput()
