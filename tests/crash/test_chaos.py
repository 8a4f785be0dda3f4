"""The short form of `make chaos`: one job, a kill, a network that is cut, and a failing model."""

import asyncio
import random
from pathlib import Path

from tests.chaos.checks import faults
from tests.chaos.plan import AIMS, Blow
from tests.chaos.trial import Ground, run
from tests.chaos.works import generalist
from tests.crash.processes import Nursery
from tests.crash.trial import SEED


async def test_a_job_ends_as_an_undisturbed_one_whatever_is_done_to_it(
    tmp_path: Path, workers: Nursery
) -> None:
    dice = random.Random(SEED)
    aims = dice.choices(sorted(AIMS), k=3)
    blows = [
        Blow("model 500", dice.randint(1, 2), aims[0], seconds=1.0),
        Blow("kill worker", dice.randint(1, 2), aims[1], seconds=0),
        Blow("refuse temporal", dice.randint(1, 2), aims[2], seconds=1.0),
    ]
    # With one phase the last disturbance could come too late: each may wait for a phase end.
    work = generalist(phases=2)
    ground = Ground(tmp_path, workers)
    quiet, shaken = await asyncio.gather(
        run(ground, work, "quiet"), run(ground, work, "shaken", blows, seed=SEED)
    )
    context = f"seed {SEED}: {[str(blow) for blow in blows]}"
    assert not quiet.faults + shaken.faults, context
    assert quiet.evidence
    assert shaken.evidence
    problems = faults(quiet.evidence, shaken.evidence, blows, shaken.parked, shaken.died)
    assert not list(problems), context
    assert shaken.fell == len(blows), context
