"""One piece of work, disturbed by a plan or not at all."""

import asyncio
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.blows import strike
from tests.chaos.checks import faults
from tests.chaos.evidence import Evidence, gather
from tests.chaos.place import Place
from tests.chaos.plan import Blow
from tests.chaos.works import Work
from tests.crash.processes import Nursery

PATIENCE = 150.0
"""Longest time without a new step, and from the last disturbance to the end, before it is a fault.
"""


@dataclass
class Ground:
    """Resources that trials share."""

    folder: Path
    nursery: Nursery
    mounts: bool = False
    jumps: bool = False


@dataclass
class Outcome:
    """Result of a trial."""

    name: str
    seconds: float
    hits: int = 0
    """Disturbances at the intended moment, before the work had ended."""
    fell: int = 0
    parked: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    evidence: Evidence | None = None


async def run(
    ground: Ground,
    work: Work,
    name: str,
    blows: Sequence[Blow] = (),
    quiet: Evidence | None = None,
    seed: int = 0,
) -> Outcome:
    """Do the work and examine what it leaves.

    Args:
        name: Of the folder that keeps the logs; unique.
        quiet: What an undisturbed trial left; None: the trial is compared with nothing.
    """
    began = time.monotonic()
    place = Place(
        name, work, ground.folder / name, ground.nursery, random.Random(f"{seed} {work.name}"),
        ground.mounts, ground.jumps,
    )  # fmt: skip
    outcome = Outcome(name, 0.0)
    async with place:
        try:
            for blow in blows:
                await place.progress(place.calls, blow.after, PATIENCE)
                if place.ended:
                    break
                outcome.hits += await strike(place, blow)
                outcome.fell += 1
                await place.progress(place.calls, 1, PATIENCE)
            await place.progress(place.calls, 10**9, PATIENCE * 2)
            outcome.evidence = await gather(place)
        except Exception as error:
            outcome.faults.append(f"{type(error).__name__}: {error}; {await told(place)}")
        outcome.parked, outcome.died = place.parked, place.died
        if outcome.evidence:
            problems = faults(
                quiet or outcome.evidence, outcome.evidence, blows, place.parked, place.died
            )
            outcome.faults += problems
        if outcome.faults and place.mounted:
            # It would be lost with the mount.
            await asyncio.to_thread(shutil.copytree, place.disk, place.folder / "kept", True)
    outcome.seconds = time.monotonic() - began
    return outcome


async def told(place: Place) -> str:
    """Describe the state of the work, for a message."""
    lines = [f"{place.calls} model calls, ended: {place.ended}"]
    try:
        async for execution in place.client.list_workflows("ExecutionStatus = 'Running'"):
            description = (
                await place.client.get_workflow_handle(execution.id).describe()
            ).raw_description
            lines.append(
                f"{execution.id}: workflow task {description.pending_workflow_task.attempt}"
            )
            lines += [
                f"{execution.id}: {each.activity_type.name}, attempt {each.attempt}, "
                f"{each.last_failure.message[:200]}"
                for each in description.pending_activities
            ]
    except Exception as error:
        lines.append(f"the server does not tell: {error}")
    logs = [f"{worker.log}: {worker.log.read_text()[-1500:]}" for worker in place.workers]
    return "\n".join([*lines, *logs])
