"""How fast a job resumes after `kill -9` of its worker."""

import asyncio
import random
import statistics
from pathlib import Path

import pytest

from tests.crash import aims
from tests.crash.aims import Aim
from tests.crash.begun import Begun
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.crash.site import Site
from tests.crash.trial import SEED, ended_as, opened
from tests.soak import soak

MOST_SECONDS = {"quick": 12.0, "default": 25.0}
"""By profile of heartbeats."""
TRIES = 3
MOMENTS = (aims.during_a_model_call, aims.during_a_checkpoint, aims.after_the_effect)
AIMS = random.Random(SEED).sample(MOMENTS, soak(1, 3))
OLD = 10
"""Steps before the kill: the workflow has been continued as new by then."""


@pytest.mark.parametrize("profile", MOST_SECONDS)
async def test_the_next_step_is_taken_within_seconds(
    tmp_path: Path,
    workers: Nursery,
    temporal: TemporalServer,
    begun: Begun,
    undisturbed: Site,
    profile: str,
) -> None:
    most = MOST_SECONDS[profile]
    await begun.ended()
    took: list[list[float]] = []
    # Other work on this machine counts too, but hardly three times.
    while len(took) < TRIES and not (took and statistics.median_low(took[-1]) < most):
        sites = [
            Site(f"{profile}-{len(took)}-{n}", tmp_path, workers, temporal, [Ledger("Ada")],
                 random.Random(SEED + n), variables={"LONGHAUL_HEARTBEAT": profile})
            for n in range(len(AIMS))
        ]  # fmt: skip
        await asyncio.gather(*(killed(site, aim) for site, aim in zip(sites, AIMS, strict=True)))
        for site in sites:
            ended_as(undisturbed, site)
        # A single one may be slow.
        took.append([blow.recovery for site in sites for blow in site.blows])
    assert statistics.median_low(took[-1]) < most, took


async def killed(site: Site, aim: Aim) -> None:
    async with opened(site):
        await site.progress({"Ada": 0}, OLD)
        await site.kill(aim)
        await site.finish()
