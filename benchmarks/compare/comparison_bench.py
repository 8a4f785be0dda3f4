"""Runs the adapters one after another, each in its own process, against the endpoint in another."""

import asyncio
import contextlib
import datetime
import json
import os
import platform
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.bare_engine import run_bare_benchmark
from benchmarks.compare import comparison_figures
from benchmarks.compare.adapter_task import AdapterTask, Outcome
from benchmarks.compare.adapters import ADAPTERS
from benchmarks.drifting_model import drifting_brief
from engine.development import FLAGS, development_server

SPARE = 60.0
"""Seconds beyond its cap that a process may take to start and to read its history."""
AT_ONCE = 2
"""Drifting runs in parallel, since those are not timed."""
DRIFT_CAP = 300.0
"""Cap of a drifting run in seconds; only its end counts."""
STEPS_PROMPT = "Write all the files."


@dataclass(frozen=True)
class ComparisonPlan:
    """What to measure."""

    names: Sequence[str]
    steps: int
    seeds: int
    rate: float
    cap: float


class ComparisonBench:
    """A scratch folder, and the endpoint that all adapters use."""

    def __init__(self, folder: Path, base_url: str, plan: ComparisonPlan) -> None:
        self._folder = folder
        self._base_url = base_url
        self._plan = plan

    @property
    def log(self) -> Path:
        return self._folder / "calls.jsonl"

    async def steps(self, name: str) -> dict[str, Any]:
        """Do a long run by default settings; repeat without the runner's limit if that ended it."""
        first = await self._measure_adapter_steps(name, lifted=False)
        if not ADAPTERS[name].limited or first.ended != "stopped":
            return {"steps": asdict(first)}
        return {
            "as_it_comes": asdict(first),
            "steps": asdict(await self._measure_adapter_steps(name, lifted=True)),
        }

    async def _measure_adapter_steps(self, name: str, *, lifted: bool) -> comparison_figures.Steps:
        model = f"steps-{self._plan.steps}-{name}{'-lifted' if lifted else ''}"
        outcome = await self._run_adapter_process(
            name, model, STEPS_PROMPT, lifted=lifted, cap=self._plan.cap
        )
        return comparison_figures.adapter_step_figures(
            outcome, comparison_figures.read_call_arrivals(self.log, model)
        )

    async def drift(self, name: str) -> dict[str, Any]:
        """Do the drifting model's runs."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def run_seed(seed: int) -> tuple[Outcome, int]:
            model = f"drift-{self._plan.rate}-{name}-{seed}"
            async with gate:
                outcome = await self._run_adapter_process(
                    name, model, drifting_brief(seed), lifted=True, cap=DRIFT_CAP
                )
            return outcome, len(comparison_figures.read_call_arrivals(self.log, model))

        seeds = range(1, self._plan.seeds + 1)
        return asdict(
            comparison_figures.drift_comparison_figures(await asyncio.gather(*map(run_seed, seeds)))
        )

    async def _run_adapter_process(
        self, name: str, model: str, prompt: str, *, lifted: bool, cap: float
    ) -> Outcome:
        folder = self._folder / model
        folder.mkdir()
        task = AdapterTask(
            self._base_url,
            model,
            prompt,
            str(folder),
            self._plan.steps,
            lifted,
            cap,
        )
        process = await asyncio.create_subprocess_exec(
            *(
                sys.executable,
                "-m",
                "benchmarks.compare.adapter_process",
                name,
                json.dumps(asdict(task)),
            ),
            stdout=subprocess.PIPE,
            stderr=(folder / "stderr").open("wb"),
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(cap + SPARE):
                printed, _ = await process.communicate()
        except TimeoutError:
            return Outcome("stopped", f"Hung: no end {SPARE:.0f} s after its time was up")
        finally:
            # The process group includes its Temporal server.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        lines = printed.decode().splitlines()
        if process.returncode or not lines:
            last = (folder / "stderr").read_text().strip().rpartition("\n")[2]
            return Outcome("stopped", last[:300] or f"exit code {process.returncode}")
        return Outcome(**json.loads(lines[-1]))


async def measure_comparison(plan: ComparisonPlan) -> dict[str, Any]:
    results: dict[str, Any] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "server": "temporal server start-dev " + " ".join(FLAGS),
        "asked": asdict(plan),
        "runners": {},
    }
    before = await _measure_comparison_unit()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with start_fake_endpoint(Path(folder)) as base_url:
            bench = ComparisonBench(Path(folder), base_url, plan)
            for name in plan.names:
                if missing := missing_adapter_package(name):
                    results["runners"][name] = {"missing": missing}
                    print(f"{name}: {missing} is not installed", file=sys.stderr)
                    continue
                print(f"{ADAPTERS[name].title} …", file=sys.stderr, flush=True)
                measured = await bench.steps(name)
                if plan.seeds:
                    measured["drift"] = await bench.drift(name)
                measured["versions"] = {each: version(each) for each in ADAPTERS[name].packages}
                results["runners"][name] = measured
    results["bare_ms"] = mean([before, await _measure_comparison_unit()])
    return results


async def _measure_comparison_unit() -> float:
    """Return the unit in milliseconds: two Temporal activities that do nothing."""
    async with development_server(ui=False) as running:
        await run_bare_benchmark(running.client, 10, local=False)
        return (await run_bare_benchmark(running.client, 60, local=False)).mean


def missing_adapter_package(name: str) -> str | None:
    """Return the first of the adapter's packages that is not installed."""
    for package in ADAPTERS[name].packages:
        try:
            version(package)
        except PackageNotFoundError:
            return package
    return None


@asynccontextmanager
async def start_fake_endpoint(folder: Path) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "benchmarks.compare.fake_endpoint", str(folder / "calls.jsonl")),
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.kill()
        await process.wait()
