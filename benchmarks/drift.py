"""`python -m benchmarks.drift`: work that a drifting model completes in a job and in a plain loop.

The same seeded model (`benchmarks.drifting_model`) runs as a job and in the plain loop of most
agents: ask, run the calls, stop at the first reply without one.
"""

import argparse
import asyncio
import tempfile
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

import httpx2
from openai import AsyncOpenAI
from rich.console import Console
from rich.table import Table
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowHandle

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root, open_checkpoints
from activities.job.snapshot import Snapshot
from benchmarks.drifting_model import (
    ITEMS,
    Drifting,
    count_correct_items,
    drifting_brief,
    drifting_file_path,
    even_drift_rates,
)
from engine.development import development_server
from engine.service import build_worker
from protocol.usage import Usage
from rehearsal import RehearsalTransport
from rehearsal.wire import Model

AT_ONCE = 10
MOST_TURNS = 500
"""Limit of the plain loop, in which a model could cycle for ever."""
PATIENCE = 1800.0


@dataclass(frozen=True)
class Ended:
    """How one run ended."""

    status: str
    waiting: str | None
    made: int
    """Number of items whose file has the right content."""
    calls: int
    usage: Usage = field(default_factory=Usage)


async def drift_as_job(
    temporal: Client, root: Root, queue: str, model: Drifting, seed: int, **details: Any
) -> Ended:
    """Run one job with this model until it completes or waits for a person."""
    start = {
        "agent": "generalist",
        "instructions": drifting_brief(seed, model.items),
        **details,
        # The model would drift in its verdicts as well.
        "set": {"review": None, **details.get("set", {})},
    }
    name = f"{queue}-{seed}"
    handle = await temporal.start_workflow(
        "Job", start, id=name, task_queue=queue, result_type=dict
    )
    closed = await closed_drift_job(handle)
    files = Snapshot.load(open_checkpoints(root, name), closed.checkpoint).files
    paths = [drifting_file_path(number) for number in range(1, model.items + 1)]
    texts = {path: files.read(path).decode() for path in paths if files.entry(path)}
    made = count_correct_items(texts, model.items)
    return Ended(closed.status, closed.waiting, made, model.calls[seed], closed.usage)


class ClosedJob(NamedTuple):
    status: str
    waiting: str | None
    checkpoint: str
    usage: Usage


async def closed_drift_job(handle: WorkflowHandle[Any, dict[str, Any]]) -> ClosedJob:
    """Return how a job stands that no longer runs; one that waits for a person is ended.

    Polls the memo, since a query of a closed job would make the worker replay it.
    """
    async with asyncio.timeout(PATIENCE):
        while True:
            description = await handle.describe()
            if description.status is not WorkflowExecutionStatus.RUNNING:
                result = await handle.result()
                usage = Usage.model_validate(result["usage"], extra="ignore")
                return ClosedJob(result["status"], None, result["checkpoint"], usage)
            if str((await description.memo()).get("status", "")).startswith("waiting"):
                status = await handle.query("status")
                await handle.terminate()
                usage = Usage.model_validate(status["usage"], extra="ignore")
                waiting = status["waiting_for"]
                return ClosedJob(status["status"], waiting, status["checkpoint"], usage)
            await asyncio.sleep(0.5)


def drift_alone(model: Drifting, seed: int) -> Ended:
    """Run the model in a plain tool-calling loop."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Make all items. Seed {seed}."}]
    files: dict[str, str] = {}
    for _ in range(MOST_TURNS):
        reply = model({"messages": messages, "tools": [{}]})
        if not reply.calls:
            break
        calls = [
            {"id": str(place), "function": {"name": name, "arguments": arguments}}
            for place, (name, arguments) in enumerate(reply.calls)
        ]
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": calls})
        for name, arguments in reply.calls:
            result = f"Error: there is no {name}"
            if name == "write_file" and isinstance(arguments, dict):
                files[arguments["path"]] = arguments["content"]
                result = f"Wrote {arguments['path']}"
            messages.append({"role": "tool", "content": result})
    return Ended("stopped", None, count_correct_items(files, model.items), model.calls[seed])


@asynccontextmanager
async def serve_drifting_model(
    temporal: Client, root: Root, model: Model, queue: str
) -> AsyncIterator[None]:
    """Run a worker whose jobs use this model."""
    client = AsyncOpenAI(
        base_url="http://model/v1",
        api_key="none",
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=RehearsalTransport(model)),
    )
    activities = all_activities(root, connect=lambda _: client)
    async with build_worker(temporal, root=root, task_queue=queue, activities=activities):
        yield


async def measure_drift(rates: list[float], seeds: int) -> Table:
    """Compare jobs and plain loops at each rate."""
    table = Table(title=f"A drifting model and {ITEMS} items, {seeds} seeds")
    columns = ("drift", "completed", "waiting", "items made", "calls", "alone: items made")
    for column in columns:
        table.add_column(column, justify="right")
    undrifted = 0.0
    with tempfile.TemporaryDirectory() as folder:
        root = Root.open(Path(folder) / "root", create=True)
        async with development_server(ui=False) as running:
            for rate in [0.0, *rates]:
                model, queue = Drifting(even_drift_rates(rate)), f"drift-{rate}"
                gate = asyncio.Semaphore(AT_ONCE)

                async def drift_in_turn(
                    seed: int, model: Drifting = model, queue: str = queue, gate: Any = gate
                ) -> Ended:
                    async with gate:
                        return await drift_as_job(running.client, root, queue, model, seed)

                count = seeds if rate else 1
                async with serve_drifting_model(running.client, root, model, queue):
                    ends = await asyncio.gather(
                        *(drift_in_turn(seed) for seed in range(1, count + 1))
                    )
                drifting = Drifting(even_drift_rates(rate))
                loops = [drift_alone(drifting, seed) for seed in range(1, count + 1)]
                calls = mean(end.calls for end in ends)
                undrifted = undrifted or calls
                waits = Counter(end.waiting for end in ends if end.waiting)
                table.add_row(
                    f"{rate:.0%}",
                    f"{sum(end.status == 'completed' for end in ends)} of {count}",
                    ", ".join(f"{reason} {n}" for reason, n in waits.items()) or "none",
                    f"{mean(end.made for end in ends):.1f}",
                    f"{calls / undrifted:.2f} x",
                    f"{mean(loop.made for loop in loops):.1f}",
                )
    return table


def benchmark_drift() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.drift", description=__doc__)
    options.add_argument("--seeds", type=int, default=50)
    options.add_argument("--rates", type=float, nargs="+", default=[0.1, 0.2, 0.4])
    arguments = options.parse_args()
    Console().print(asyncio.run(measure_drift(arguments.rates, arguments.seeds)))


if __name__ == "__main__":
    benchmark_drift()
