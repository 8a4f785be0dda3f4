"""`python -m benchmarks.worker_throughput`: steps a second of one worker process and of two.

The model takes no time. Server, model and workers share the machine.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
import uuid
from pathlib import Path

from benchmarks.scale import SETTLED, count_latent_model_calls, python_process, scale_job_start
from engine.development import development_server

JOBS = 20
WINDOW_SECONDS = 12
START_SECONDS = 8
"""Seconds to wait after the first process is ready, so that the others are too."""
ROUNDS = 2


async def measure_process_rate(processes: int) -> float:
    """Return steps a second of `JOBS` jobs on this many worker processes."""
    queue = f"processes-{uuid.uuid4().hex[:8]}"
    with tempfile.TemporaryDirectory() as folder:
        async with (
            development_server(ui=False) as temporal,
            python_process(["-m", "benchmarks.latent_model", "--delay", "0.001"], {}) as (_, line),
        ):
            endpoint = line.split()[-1]
            worker = {
                "TEMPORAL_ADDRESS": temporal.address,
                "LONGHAUL_TASK_QUEUE": queue,
                "LONGHAUL_WORKSPACES": str(Path(folder) / "root"),
                "OPENAI_BASE_URL": endpoint,
                "OPENAI_API_KEY": "none",
            }
            async with python_process(["worker.py", "--processes", str(processes)], worker):
                await asyncio.sleep(START_SECONDS)
                for n in range(JOBS):
                    await temporal.client.start_workflow(
                        "Job", scale_job_start(), id=f"{queue}-{n}", task_queue=queue
                    )
                while await count_latent_model_calls(endpoint) < SETTLED * JOBS:  # noqa: ASYNC110 - it counts
                    await asyncio.sleep(0.5)
                begun, before = time.monotonic(), await count_latent_model_calls(endpoint)
                await asyncio.sleep(WINDOW_SECONDS)
                return (await count_latent_model_calls(endpoint) - before) / (
                    time.monotonic() - begun
                )


async def compare_worker_throughput() -> None:
    """Print the rates and their ratio, several times."""
    for _ in range(ROUNDS):
        single, two = await measure_process_rate(1), await measure_process_rate(2)
        print(f"one process {single:.1f}, two {two:.1f} steps a second: {two / single:.2f} times")


if __name__ == "__main__":
    asyncio.run(compare_worker_throughput())
