"""`python -m benchmarks.scale`: many jobs in flight on one worker process.

It answers two questions. Can a worker keep up with this many jobs whose model takes time, and with
what resources? And with a model that takes no time, how many steps a second does it reach? Each is
compared with the bare engine at the same concurrency; server, model and worker share the machine.
"""

import argparse
import asyncio
import gc
import json
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.client import Client
from temporalio.worker import Worker

from activities.checkpoints import Root
from benchmarks.bare_engine import Bare, do_nothing, do_nothing_locally, run_bare_waiting
from benchmarks.benchmark_jobs import benchmark_job_start, serve_benchmark_jobs
from benchmarks.latent_model import count_latent_model_calls
from benchmarks.option_values import parse_positive_number, parse_whole_number
from benchmarks.process_usage import process_cpu_seconds, process_megabytes, python_process
from benchmarks.zero_cost import ZeroCost
from engine.development import development_server

SETTLED = 10
"""Number of calls after which a job is in its tactical phase, where a file tool follows each call.
"""


def benchmark_scale() -> None:
    options = argparse.ArgumentParser(
        prog="python -m benchmarks.scale", description=__doc__, allow_abbrev=False
    )
    for name, type_, default, text in (
        ("--jobs", parse_whole_number, 500, "jobs in flight"),
        ("--latency", parse_positive_number, 15.0, "seconds a model call takes"),
        ("--window", parse_positive_number, 60.0, "seconds that are measured"),
        ("--busy", parse_whole_number, 50, "jobs side by side without latency"),
    ):
        options.add_argument(name, type=type_, default=default, help=text)
    options.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = options.parse_args()
    # As a worker does: this process runs the jobs.
    gc.freeze()
    figures = asyncio.run(measure_scale(arguments))
    print_scale_table(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


async def measure_scale(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures by name."""
    with tempfile.TemporaryDirectory() as folder:
        async with development_server(ui=False) as temporal:
            busy = await _run_busy_jobs(temporal.client, Path(folder) / "busy", options.busy)
        async with development_server(ui=False) as temporal:
            bare = await run_bare_waiting(
                temporal.client, options.jobs, options.latency, options.window
            )
        async with development_server(ui=False) as temporal:
            waiting = await _run_waiting_jobs(
                temporal.client, temporal.address, Path(folder), options.jobs, options.latency,
                options.window,
            )  # fmt: skip
    ratio = {"share_of_bare": waiting["calls_a_second"] / bare["bare_calls_a_second"]}
    asked_for = {"jobs": options.jobs, "latency": options.latency, "busy": options.busy}
    return asked_for | waiting | bare | ratio | busy


async def _run_waiting_jobs(
    temporal: Client, address: str, folder: Path, jobs: int, latency: float, window: float
) -> dict[str, float]:
    """Run `jobs` jobs whose model calls take `latency` seconds on one worker process."""
    queue = f"scale-{uuid.uuid4().hex[:8]}"
    model = ["-m", "benchmarks.latent_model", "--delay", str(latency)]
    async with python_process(model, {}) as (_, line):
        endpoint = line.split()[-1]
        worker = {
            "TEMPORAL_ADDRESS": address,
            "LONGHAUL_TASK_QUEUE": queue,
            "LONGHAUL_WORKSPACES": str(folder / "root"),
            "OPENAI_BASE_URL": endpoint,
            "OPENAI_API_KEY": "none",
        }
        async with python_process(["worker.py"], worker) as (serving_jobs, _):
            begun = time.monotonic()
            for n in range(jobs):
                await temporal.start_workflow(
                    "Job", benchmark_job_start(), id=f"{queue}-{n}", task_queue=queue
                )
            started = time.monotonic() - begun
            while (calls := await count_latent_model_calls(endpoint)) < SETTLED * jobs:
                print(f"{calls} model calls, {time.monotonic() - begun:.0f} s", file=sys.stderr)
                await asyncio.sleep(5)
            before = (
                time.monotonic(),
                await count_latent_model_calls(endpoint),
                process_cpu_seconds(serving_jobs),
            )
            await asyncio.sleep(window)
            after = (
                time.monotonic(),
                await count_latent_model_calls(endpoint),
                process_cpu_seconds(serving_jobs),
            )
            memory = process_megabytes(serving_jobs)
    seconds = after[0] - before[0]
    rate = (after[1] - before[1]) / seconds
    return {
        "start_seconds": started,
        "calls_a_second": rate,
        "share_of_possible": rate * latency / jobs,
        "late_seconds": jobs / rate - latency,
        "cpu_ms_a_step": 1000 * (after[2] - before[2]) / (after[1] - before[1]),
        "cores": (after[2] - before[2]) / seconds,
        "megabytes": memory,
    }


async def _run_busy_jobs(
    temporal: Client, folder: Path, jobs: int, steps: int = 40
) -> dict[str, float]:
    """Return steps a second of `jobs` jobs and of as many bare workflows, in this process."""
    queue = f"bare-{uuid.uuid4().hex[:8]}"
    root = Root.open(folder, create=True)
    async with Worker(
        temporal, task_queue=queue, workflows=[Bare], activities=[do_nothing, do_nothing_locally]
    ):
        begun = time.monotonic()
        await asyncio.gather(
            *(
                temporal.execute_workflow(
                    Bare.run, args=[steps, False], id=f"{queue}-{n}", task_queue=queue
                )
                for n in range(jobs)
            )
        )
        engine = jobs * steps / (time.monotonic() - begun)
    async with serve_benchmark_jobs(temporal, root, ZeroCost(steps=steps)) as (queue, model):
        begun = time.monotonic()
        await asyncio.gather(
            *(
                temporal.execute_workflow(
                    "Job", benchmark_job_start(), id=f"{queue}-{n}", task_queue=queue
                )
                for n in range(jobs)
            )
        )
        # The planning phase's model calls, each with a tool, are steps too.
        ours = len(model.cpu) / (time.monotonic() - begun)
    return {"bare_steps_a_second": engine, "steps_a_second": ours, "throughput": ours / engine}


def print_scale_table(figures: dict[str, Any]) -> None:
    latency, jobs, busy = figures["latency"], figures["jobs"], figures["busy"]
    table = Table(title=f"{jobs} jobs, {latency:g} s a model call, one worker process")
    table.add_column()
    table.add_column(justify="right")
    for title, text in (
        ("model calls a second", f"{figures['calls_a_second']:.1f}"),
        ("  of what the latency allows", f"{figures['share_of_possible']:.0%}"),
        ("  of the bare engine's", f"{figures['share_of_bare']:.0%}"),
        ("a step beyond its model call, s", f"{figures['late_seconds']:.2f}"),
        ("processor time of the worker a step, ms", f"{figures['cpu_ms_a_step']:.1f}"),
        ("  bare engine, ms", f"{figures['bare_cpu_ms_a_step']:.1f}"),
        ("  cores in use", f"{figures['cores']:.2f}"),
        ("memory of the worker, MB", f"{figures['megabytes']:.0f}"),
        ("seconds to start them all", f"{figures['start_seconds']:.1f}"),
        (f"{busy} jobs, no latency: steps a second", f"{figures['steps_a_second']:.0f}"),
        ("  bare engine", f"{figures['bare_steps_a_second']:.0f}"),
        ("  ratio", f"{figures['throughput']:.2f}"),
    ):
        table.add_row(title, text)
    Console().print(table)


if __name__ == "__main__":
    benchmark_scale()
