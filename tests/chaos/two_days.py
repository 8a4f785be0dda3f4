"""`python -m tests.chaos.two_days`: one job, left alone for 48 hours of a schedule of blows.

An hour of the schedule lasts as many seconds as one likes. The job is as long as the schedule, and
nobody looks after it but to renew the key and to resume what waits for a person. What it leaves is
compared with what the same job leaves that nobody disturbs.
"""

import argparse
import asyncio
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from benchmarks.actions import read_action_counts
from benchmarks.histories import workflow_histories
from benchmarks.process_usage import process_megabytes
from engine.free_ports import free_port
from tests.chaos import disk
from tests.chaos.blows import strike
from tests.chaos.checks import faults
from tests.chaos.evidence import Evidence, gather
from tests.chaos.place import JOB, Place
from tests.chaos.plan import Blow, Kind
from tests.chaos.trial import told
from tests.chaos.works import Work
from tests.crash.model import Ledger
from tests.crash.processes import REPOSITORY, nursery

HOURS = 48
CALLS = 6.5
"""Of a tactical phase of the ledger and the strategic one before it."""
PATIENCE = 300.0
"""Longest time without a new call after the last blow, in seconds, before it is a fault."""
LASTING: dict[Kind, float] = {
    "kill server": 0.1,
    "model 429": 1.0,
    "key expires": 1.0,
    "refuse temporal": 0.5,
    "refuse model": 1.0,
    "full disk": 1.0,
    "deploy": 0.0,
}
"""The blows that come once each, and their hours."""
LOOK = "grpc_QueryWorkflow"
"""The Action of a look at the job; nobody but this program looks."""
NEW = "# Another version of the workflows, which the test deploys.\n"


@dataclass(frozen=True)
class Moment:
    """A blow by the clock."""

    hour: float
    event: Kind
    hours: float = 0.0
    """How long it lasts."""

    def __str__(self) -> str:
        return f"{self.hour:4.1f} h {self.event}{f' for {self.hours} h' if self.hours else ''}"


def draw_schedule(seed: int, kills: int) -> list[Moment]:
    """Draw the blows of the 48 hours: kills of the worker at even distances, the others between."""
    dice = random.Random(f"{seed} two days")
    every = HOURS / (kills + 1)
    moments = [
        Moment(round(every * (n + dice.uniform(0.6, 0.9)), 1), "kill worker") for n in range(kills)
    ]
    part = HOURS / (len(LASTING) + 1)
    events = dice.sample(sorted(LASTING), len(LASTING))
    moments += [
        Moment(round(part * (n + dice.uniform(0.5, 1.0)), 1), event, LASTING[event])
        for n, event in enumerate(events)
    ]
    return sorted(moments, key=lambda moment: moment.hour)


@dataclass
class Watch:
    """The figures of a run."""

    actions: Counter[str] = field(default_factory=Counter)
    memory: float = 0.0
    """Most megabytes of a worker."""
    bytes: int = 0
    """Of the workspaces root, at the end."""
    files: int = 0
    seconds: float = 0.0
    builds: list[str] = field(default_factory=list)
    """Versions of the code that took part, by the job's histories."""

    async def read_actions(self, place: Place) -> None:
        """Add what the server counted; it begins anew when it is started again."""
        if place.metrics_port:
            with suppress(httpx2.HTTPError):
                self.actions += await read_action_counts(place.metrics_port)

    async def read_end(self, place: Place) -> None:
        """Measure what the job used and left."""
        await self.read_actions(place)
        paths = [path for path in place.root.path.rglob("*") if path.is_file()]
        self.bytes = sum(path.stat().st_blocks * 512 for path in paths)
        self.files = len([*place.root.workspace(JOB).rglob("*")])
        for history in await workflow_histories(place.client, JOB):
            for event in history:
                done = event.workflow_task_completed_event_attributes
                if (build := done.worker_version.build_id) and build not in self.builds:
                    self.builds.append(build)

    def look(self, place: Place) -> None:
        for worker in place.workers:
            with suppress(OSError, IndexError):
                self.memory = max(self.memory, process_megabytes(worker.pid))


async def _befall(place: Place, moment: Moment, hour: float, watch: Watch, stack: ExitStack) -> str:
    seconds = moment.hours * hour
    match moment.event:
        case "key expires":
            place.key = "renewed"
            await asyncio.sleep(seconds)
            place.variables["OPENAI_API_KEY"] = place.key
            _replace_worker(place)
        case "deploy":
            logs = place.folder / "deployed"
            code = logs / "code"
            await asyncio.to_thread(_copy_code, code)
            place.nursery = stack.enter_context(nursery(logs, code=code))
            _replace_worker(place)
        case _:
            if moment.event == "kill server":
                await watch.read_actions(place)
            await strike(place, Blow(moment.event, 0, "at_any_time", seconds))
    return f"{moment}, {place.calls} calls"


def _replace_worker(place: Place) -> None:
    """Start another worker and drain those before, as a rolling deployment does."""
    before, place.workers = place.workers, []
    place.start_worker()
    for worker in before:
        worker.drain()


def _copy_code(target: Path) -> None:
    """Copy the packages, with other workflows by their build id."""
    ignored = shutil.ignore_patterns(".*", "__pycache__", "workspaces", "docs")
    shutil.copytree(REPOSITORY, target, ignore=ignored)
    with (target / "workflows" / "__init__.py").open("a", encoding="utf-8") as file:
        file.write(NEW)


async def _pass(place: Place, until: float, watch: Watch) -> None:
    """Wait for a moment, or the end, as a person who looks in once in a while."""
    while not place.ended and time.monotonic() < until:
        place.look_for_the_dead()
        await place.shepherd()
        watch.look(place)
        await asyncio.sleep(0.3)


async def _pass_until_end(place: Place, watch: Watch) -> None:
    while not place.ended:
        before = place.calls
        await _pass(place, time.monotonic() + PATIENCE, watch)
        if not place.ended and place.calls == before:
            raise TimeoutError(await told(place))


async def _run(place: Place, moments: list[Moment], hour: float) -> tuple[Evidence, Watch]:
    """Let the job run to its end under these blows."""
    watch, began = Watch(), time.monotonic()
    with ExitStack() as stack:
        async with place:
            try:
                for moment in moments:
                    await _pass(place, began + moment.hour * hour, watch)
                    if place.ended:
                        print(f"the job ended before {moment}", flush=True)
                        break
                    line = await _befall(place, moment, hour, watch, stack)
                    print(f"{time.monotonic() - began:6.0f} s: {line}", flush=True)
                await _pass_until_end(place, watch)
                watch.seconds = time.monotonic() - began
                await watch.read_end(place)
                evidence = await gather(place)
                evidence.left += [
                    f"worker {worker.pid} does not end"
                    for worker in place.nursery.born
                    if worker.alive
                ]
                return evidence, watch
            finally:
                print(f"{time.monotonic() - began:6.0f} s: {place.calls} calls", flush=True)


def _figures(quiet: Evidence, shaken: Evidence, watch: Watch, place: Place) -> dict[str, Any]:
    actions = Counter({kind: n for kind, n in watch.actions.items() if kind != LOOK})
    needed, made = quiet.answered.total(), shaken.answered.total()
    return {
        "status": shaken.result["status"],
        "same_tree": shaken.tree == quiet.tree,
        "calls_needed": needed,
        "calls_made": made,
        "requests_made_again": made - len(shaken.answered),
        "seconds": round(watch.seconds),
        "builds": watch.builds,
        "actions": actions.total(),
        "actions_per_call": round(actions.total() / made, 2),
        "action_kinds": dict(actions.most_common()),
        "looks": watch.actions[LOOK],
        "root_megabytes": round(watch.bytes / 2**20, 2),
        "files_in_tree": watch.files,
        "worker_megabytes": round(watch.memory),
        "runs": len(shaken.runs),
        "events": sum(run.events for run in shaken.runs),
        "most_events_of_a_run": max(run.events for run in shaken.runs),
        "history_kilobytes": round(sum(run.size for run in shaken.runs) / 1024),
        "waits_for_a_person": place.parked,
    }


async def _prove(options: argparse.Namespace, folder: Path, stack: ExitStack) -> int:
    phases = options.phases or round(HOURS * options.hour / 2 / CALLS / (options.delay + 0.3))
    ledger = Ledger("Ada", phases)
    work = Work(
        "ledger", "Job", lambda root: ledger.start(**{"limits.history_events": 500}), ledger
    )
    moments = draw_schedule(options.seed, options.kills)
    if not disk.can_mount():
        print("skipped: full disk (no file system can be mounted here: unshare is refused)")
        moments = [moment for moment in moments if moment.event != "full disk"]
    logs = folder / "workers"
    logs.mkdir()
    workers = stack.enter_context(nursery(logs))
    dice = random.Random(options.seed)
    undisturbed = Place("quiet", work, folder / "quiet", workers, dice, disk.can_mount(), False)
    quiet, _ = await _run(undisturbed, [], options.hour)
    variables = {"LONGHAUL_HEARTBEAT": options.heartbeat}
    place = Place(
        "shaken", work, folder / "shaken", workers, dice, disk.can_mount(), False,
        pause=options.delay, metrics_port=free_port(), variables=variables, looks=options.hour / 4,
    )  # fmt: skip
    shaken, watch = await _run(place, moments, options.hour)
    print(json.dumps(_figures(quiet, shaken, watch, place), indent=2), flush=True)
    blows = [Blow(moment.event, 0, "at_any_time", moment.hours) for moment in moments]
    wrong = list(faults(quiet, shaken, blows, place.parked, place.died))
    for fault in wrong:
        print(f"FAULT {fault}", flush=True)
    return 1 if wrong else 0


def main() -> int:
    options = _options()
    disk.enter_private_mounts("tests.chaos.two_days")
    folder = Path(tempfile.mkdtemp(prefix="longhaul-two-days-"))
    print(f"seed {options.seed}, logs in {folder}", flush=True)
    with ExitStack() as stack:
        code = asyncio.run(_prove(options, folder, stack))
    if code == 0:
        shutil.rmtree(folder)
    return code


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.two_days", description=__doc__)
    parser.add_argument("--seed", type=int, default=48, help="decides on all blows")
    parser.add_argument("--hour", type=float, default=8.0, help="seconds of an hour")
    parser.add_argument("--delay", type=float, default=1.0, help="seconds of a model call")
    parser.add_argument("--kills", type=int, default=HOURS - 1, help="of the worker, in all")
    parser.add_argument(
        "--phases", type=int, help="of the job; without them its calls take half of the time"
    )
    parser.add_argument("--heartbeat", choices=["quick", "default"], default="quick")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
