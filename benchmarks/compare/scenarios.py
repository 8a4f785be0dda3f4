"""Kills a runner's process, and its server, at chosen moments, and counts what is done again."""

import asyncio
import datetime
import json
import math
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from temporalio.client import Client

from benchmarks.compare.adapter_task import AdapterTask, Outcome
from benchmarks.compare.adapters import ADAPTERS
from benchmarks.compare.comparison_bench import missing_adapter_package, start_fake_endpoint
from benchmarks.compare.temporal_adapters import WORKFLOW, adapter_workflow_task_failure
from engine.development import DATABASE_FLAGS, FLAGS, find_temporal_binary
from engine.free_ports import free_port
from protocol.search_attribute_names import NAMES

AT_ONCE = 4
"""Short scenarios side by side. A run mostly waits."""
SPARE = 120.0
"""Seconds beyond its calls after which a run counts as standing still."""
DOWN = 5.0
"""Seconds for which the server is away."""
Figures = dict[str, Any]


@dataclass(frozen=True)
class Scenario:
    calls: str
    """Seconds of the calls: those of one reply with `+`, replies with `_` between them."""
    seconds: float
    """Seconds that they take one after another."""
    kill_after: tuple[str, int] | None
    """Kind and number of events before the process is killed; None: it is not."""
    wait: float = 1.0
    """Seconds from those events to the kill."""
    changed: str = ""
    """What version B, which takes over, changes."""
    twice: bool = False
    """Whether recovery is cut short: the server is killed, or the process with its database."""


SCENARIOS = {
    "long": Scenario("600", 600, None),
    "cut": Scenario("60", 60, ("began", 1), wait=30),
    "reply": Scenario("1+1+6+6+6", 20, ("ended", 2)),
    "recovery": Scenario("6", 6, ("began", 1), twice=True),
    "prompt": Scenario("0_6_0", 6, ("began", 2), changed="prompt"),
    "loop": Scenario("0_6_0", 6, ("began", 2), changed="loop"),
}


class ScenarioRun:
    """A run in processes that are killed one after another, on a server of its own."""

    def __init__(self, name: str, task: AdapterTask) -> None:
        self._name = name
        self._folder = Path(task.folder)
        self._port = free_port()
        self._server: subprocess.Popen[bytes] | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._task = task
        if ADAPTERS[name].temporal:
            self._task = replace(task, address=f"127.0.0.1:{self._port}")
            self._start_server()

    def _start_server(self) -> None:
        attributes = [part for name in NAMES for part in ("--search-attribute", f"{name}=Keyword")]
        database = ("--db-filename", str(self._folder / "temporal.db"), *DATABASE_FLAGS)
        self._server = subprocess.Popen(
            [
                *(str(find_temporal_binary()), "server", "start-dev", "--headless"),
                *("--ip", "127.0.0.1", "--port", str(self._port), "--log-level", "error"),
                *(*database, *attributes, *FLAGS),
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def begin(self, changed: str = "") -> None:
        """Start a process, which begins the run or continues it, in version A or B."""
        self._task = replace(self._task, changed=changed)
        command = ("-m", "benchmarks.compare.adapter_process", self._name)
        with (
            (self._folder / "stdout").open("wb") as out,
            (self._folder / "stderr").open("ab") as err,
        ):
            self._process = subprocess.Popen(
                [sys.executable, *command, json.dumps(asdict(self._task))],
                stdout=out,
                stderr=err,
                start_new_session=True,
            )

    def kill(self) -> float:
        """Kill the process and return the time."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        return time.time()

    def kill_server(self) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.wait()

    async def disturb_recovery(self) -> None:
        if self._server is None:
            await self.until("began", 2)
            self.kill()
            self.begin()
            return
        await self.until("up", 2)
        self.kill_server()
        await asyncio.sleep(DOWN)
        self._start_server()

    def events(self, kind: str) -> list[dict[str, Any]]:
        """Return the events of this kind, in order."""
        log = self._task.events
        events = map(json.loads, log.read_text().splitlines() if log.exists() else ())
        return [event for event in events if event["kind"] == kind]

    async def until(self, kind: str, count: int) -> None:
        """Wait for this number of events. Raises TimeoutError."""
        async with asyncio.timeout(SPARE):
            while True:
                if len(self.events(kind)) >= count:
                    return
                await asyncio.sleep(0.1)

    async def outcome(self, seconds: float) -> Outcome:
        """Wait until the process ends."""
        assert self._process is not None
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            await asyncio.sleep(0.2)
            if self._process.poll() is None:
                continue
            if printed := (self._folder / "stdout").read_text().splitlines():
                return Outcome(**json.loads(printed[-1]))
            text = (self._folder / "stderr").read_text().strip()
            return Outcome("stopped", text.rpartition("\n")[2])
        return Outcome("time", await self._failure_on_server())

    async def _failure_on_server(self) -> str:
        """Return what failed the run's last workflow task, if any."""
        if self._server is None:
            return ""
        client = await Client.connect(self._task.address)
        failure = await adapter_workflow_task_failure(client.get_workflow_handle(WORKFLOW))
        return "" if failure == "unknown" else failure.removeprefix(": ")


async def play_scenario(run: ScenarioRun, scenario: Scenario) -> Figures:
    """Do to the run what the scenario says. Raises TimeoutError: it does not get that far."""
    killed, seconds = math.inf, scenario.seconds + SPARE
    run.begin()
    if scenario.kill_after:
        await run.until(*scenario.kill_after)
        await asyncio.sleep(scenario.wait)
        killed = run.kill()
        run.begin(scenario.changed)
    if scenario.twice:
        await run.disturb_recovery()
    outcome = await run.outcome(seconds)
    figures = scenario_figures(run, killed, outcome)
    if scenario.changed and outcome.ended == "time":
        run.kill()
        run.begin()
        figures["with_a"] = (await run.outcome(seconds)).ended
    numbers = {event["number"] for event in run.events("ended")}
    return {**figures, "lost": len(re.split("[+_]", scenario.calls)) - len(numbers)}


def scenario_figures(run: ScenarioRun, killed: float, outcome: Outcome) -> Figures:
    """Return what was done again after the kill."""
    began = run.events("began")
    before = {event["number"] for event in began if event["at"] < killed}
    done = {event["number"] for event in run.events("ended") if event["at"] < killed}
    after = [event for event in began if event["at"] >= killed]
    again = {event["number"] for event in after}
    return {
        "ended": outcome.ended,
        "error": outcome.error,
        "begun": len(began),
        "done": len(done),
        "done_again": len(again & done),
        "cut": len(before - done),
        "cut_again": len(again & (before - done)),
        "version": after[-1]["version"] if after else "",
    }


async def run_scenario(folder: Path, base_url: str, runner: str, name: str) -> Figures:
    """Run one scenario with one runner."""
    if missing := missing_adapter_package(runner):
        return {"missing": f"for want of `{missing}`"}
    scenario, folder = SCENARIOS[name], folder / f"{runner}-{name}"
    folder.mkdir()
    task = AdapterTask(
        *(base_url, f"calls-{scenario.calls}-{runner}-{name}", "Make the calls.", str(folder)),
        steps=1,
        cap=3600,
        scenario=True,
        default_limits=scenario.kill_after is None,
    )
    run = ScenarioRun(runner, task)
    try:
        return await play_scenario(run, scenario)
    except TimeoutError:
        return {"missing": "it did not get that far"}
    finally:
        run.kill()
        run.kill_server()


async def measure_scenarios(runners: Sequence[str], names: Sequence[str]) -> Figures:
    """Run each scenario with each runner, the long ones all at once."""
    gate = asyncio.Semaphore(AT_ONCE)
    results: dict[str, Figures] = {runner: {} for runner in runners}

    async def measure(base_url: str, runner: str, name: str) -> None:
        async with gate if SCENARIOS[name].kill_after else asyncio.Semaphore():
            figures = await run_scenario(Path(folder), base_url, runner, name)
        results[runner][name] = figures
        print(runner, name, json.dumps(figures), file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with start_fake_endpoint(Path(folder)) as base_url:
            pairs = [(runner, name) for name in names for runner in runners]
            await asyncio.gather(*(measure(base_url, *pair) for pair in pairs))
    return {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{os.cpu_count()} cores, Python {platform.python_version()}",
        "runners": results,
    }
