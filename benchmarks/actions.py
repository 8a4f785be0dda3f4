"""`python -m benchmarks.actions`: what a job costs in Actions, which Temporal Cloud bills.

The server counts them itself, in its metric `action`. Both profiles of heartbeats are measured, by
a model that takes 20 seconds and calls one file tool in each reply.
"""

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2
from temporalio.client import Client

from activities.checkpoints import Root
from benchmarks.benchmark_jobs import benchmark_job_start, serve_benchmark_jobs
from benchmarks.zero_cost import ZeroCost
from engine.development import development_server
from engine.free_ports import free_port

JOBS = 8
_ACTION = re.compile(
    r'^action\{action_type="(?P<kind>[^"]+)",namespace="default",.*\} (?P<count>\d+)$', re.M
)


async def read_action_counts(metrics_port: int) -> Counter[str]:
    """Return the server's own count of Actions by kind."""
    async with httpx2.AsyncClient() as http:
        text = (await http.get(f"http://127.0.0.1:{metrics_port}/metrics")).text
    counts: Counter[str] = Counter()
    for match in _ACTION.finditer(text):
        counts[match["kind"]] += int(match["count"])
    return counts


async def settled_action_counts(metrics_port: int) -> Counter[str]:
    """Return the counts once two seconds add nothing, since the server publishes them late."""
    counts = await read_action_counts(metrics_port)
    while True:
        await asyncio.sleep(2)
        later = await read_action_counts(metrics_port)
        if later == counts:
            return counts
        counts = later


async def measure_actions(
    temporal: Client, metrics_port: int, root: Root, *, delay: float, calls: int, quick: bool
) -> dict[str, Any]:
    """Return the Actions of some jobs side by side, by kind and for each model call."""
    before = await read_action_counts(metrics_port)
    model = ZeroCost(steps=calls)
    async with serve_benchmark_jobs(temporal, root, model, delay, quick=quick) as (queue, endpoint):
        handles = [
            await temporal.start_workflow(
                "Job", benchmark_job_start(), id=f"{queue}-{number}", task_queue=queue
            )
            for number in range(JOBS)
        ]
        await asyncio.gather(*(handle.result() for handle in handles))
        asked = len(endpoint.cpu)
    kinds = await settled_action_counts(metrics_port) - before
    return {
        "delay_seconds": delay,
        "profile": "quick" if quick else "default",
        "model_calls": asked,
        "actions": kinds.total(),
        "actions_per_model_call": round(kinds.total() / asked, 2),
        "kinds": dict(kinds.most_common()),
    }


async def _measure_profile(delay: float, calls: int, *, quick: bool) -> dict[str, Any]:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        root = Root.open(Path(folder) / "root", create=True)
        async with development_server(ui=False, metrics_port=port) as server:
            return await measure_actions(
                server.client, port, root, delay=delay, calls=calls, quick=quick
            )


async def _measure_profiles(delay: float, calls: int) -> list[dict[str, Any]]:
    """Measure both profiles at the same time, each with a server of its own."""
    profiles = (_measure_profile(delay, calls, quick=quick) for quick in (False, True))
    return list(await asyncio.gather(*profiles))


def run_actions_benchmark() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.actions", description=__doc__)
    options.add_argument("--delay", type=float, default=20.0, help="seconds a model call takes")
    options.add_argument("--calls", type=int, default=15, help="model calls of the list's phase")
    arguments = options.parse_args()
    print(json.dumps(asyncio.run(_measure_profiles(arguments.delay, arguments.calls)), indent=2))


if __name__ == "__main__":
    run_actions_benchmark()
