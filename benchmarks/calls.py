"""`python -m benchmarks.calls`: model calls and prompt tokens for the same work, side by side.

The model is `benchmarks.capable`, run as a job and in a plain loop, each with batched calls and
with one call per reply.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from activities.checkpoints import Root
from activities.text.tokens import MESSAGE_TOKENS, count_tokens
from benchmarks.capable import FILES, MOST_CALLS, Capable
from benchmarks.drift import serve_drifting_model
from engine.development import development_server

LIMIT = 32
"""Maximum model calls for the work with a model that batches."""


class Spent(NamedTuple):
    """Cost of one way of working."""

    calls: int
    prompt_tokens: int


async def count_calls_as_job(temporal: Client, root: Root, most: int) -> Spent:
    """Do the work as a job. Raises AssertionError if it does not complete."""
    model, queue = Capable(most), f"calls-{most}"
    start = {
        "agent": "generalist",
        "instructions": f"Write {FILES} files, each with its square.",
        "set": {"review": None},
    }
    async with serve_drifting_model(temporal, root, model, queue):
        result: dict[str, Any] = await temporal.execute_workflow(
            "Job", start, id=queue, task_queue=queue, result_type=dict
        )
    assert result["status"] == "completed", result
    return Spent(model.calls, result["usage"]["prompt_tokens"])


def count_calls_alone(most: int) -> Spent:
    """Do the work in a loop that runs the calls of each reply until a reply has none."""
    model, tokens = Capable(most), 0
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Write {FILES} files."}]
    while True:
        tokens += sum(MESSAGE_TOKENS + count_tokens(str(message)) for message in messages)
        reply = model({"messages": messages, "tools": [{}]})
        if not reply.calls:
            return Spent(model.calls, tokens)
        calls = [
            {"id": str(place), "function": {"name": name, "arguments": arguments}}
            for place, (name, arguments) in enumerate(reply.calls)
        ]
        messages.append({"role": "assistant", "content": reply.content, "tool_calls": calls})
        messages += [{"role": "tool", "content": "Wrote it."} for _ in calls]


async def measure_calls(temporal: Client, root: Root) -> dict[str, Spent]:
    """Measure all four ways, by name."""
    return {
        f"a job, up to {MOST_CALLS} calls a reply": await count_calls_as_job(
            temporal, root, MOST_CALLS
        ),
        "a job, one call a reply": await count_calls_as_job(temporal, root, 1),
        f"a plain loop, up to {MOST_CALLS}": count_calls_alone(MOST_CALLS),
        "a plain loop, one": count_calls_alone(1),
    }


def benchmark_calls_table(spent: dict[str, Spent]) -> Table:
    rendered = Table(title=f"{FILES} files in six phases (limit {LIMIT} calls for the first row)")
    for column in ("", "model calls", "prompt tokens"):
        rendered.add_column(column, justify="right" if column else "left")
    for name, each in spent.items():
        rendered.add_row(name, f"{each.calls:,}", f"{each.prompt_tokens:,}")
    return rendered


async def _run_calls_benchmark() -> dict[str, Spent]:
    with tempfile.TemporaryDirectory() as folder:
        root = Root.open(Path(folder) / "root", create=True)
        async with development_server(ui=False) as running:
            return await measure_calls(running.client, root)


if __name__ == "__main__":
    Console().print(benchmark_calls_table(asyncio.run(_run_calls_benchmark())))
