"""`kill -9` of the worker within a step, 32 times: the job ends as if nothing had happened."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.crash.aims import AIMS, Aim, at_the_end
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.crash.site import Site
from tests.crash.trial import ROUNDS, ended_as, hits, opened, some_steps

SITES = 8
KILLS = 4
"""Of each site. The sites run side by side, because a recovery is mostly waiting."""


@pytest.mark.parametrize("seed", ROUNDS)
async def test_the_job_ends_as_the_undisturbed_one(
    seed: int, tmp_path: Path, workers: Nursery, temporal: TemporalServer, undisturbed: Site
) -> None:
    dealer = random.Random(seed)
    sites = [
        Site(f"killed-{seed}-{n}", tmp_path, workers, temporal, [Ledger("Ada")],
             random.Random(f"{seed} {n}"))
        for n in range(SITES)
    ]  # fmt: skip
    # Over all sites each aim is taken about equally often.
    deck = [AIMS[n % len(AIMS)] for n in range(SITES * KILLS)]
    aims = [dealer.sample(deck[n::SITES], KILLS) for n in range(SITES)]
    for dealt in aims[:2]:
        dealt[-1] = at_the_end
    await asyncio.gather(*(killed(site, dealt) for site, dealt in zip(sites, aims, strict=True)))
    for site in sites:
        ended_as(undisturbed, site, seed)
    assert sum(len(site.blows) for site in sites) == SITES * KILLS
    assert len(hits(sites)) > 0.75 * SITES * KILLS, hits(sites)


async def killed(site: Site, aims: list[Aim]) -> None:
    async with opened(site):
        # The first kill comes while the job is being prepared or soon after.
        await site.kill(aims[0])
        for aim in aims[1:]:
            await some_steps(site)
            await site.kill(aim)
        await site.finish()
