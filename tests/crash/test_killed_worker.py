"""`kill -9` of the worker within a step: the job ends as if nothing had happened."""

import asyncio
import random

from tests.crash.aims import AIMS, Aim, at_the_end
from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.site import Site
from tests.crash.trial import SEED, ended_as, hits, opened, some_steps, told
from tests.soak import soak

SITES = soak(2, 8)
KILLS = soak(2, 4)
"""For each site. The sites run side by side, because a recovery is mostly waiting."""
LEAST_HITS = soak(2, 25)
AT_THE_END = soak(1, 2)
"""Number of sites whose last kill comes at the end."""


async def test_the_job_ends_as_the_undisturbed_one(begun: Begun, undisturbed: Site) -> None:
    sites = await begun(trial)
    for site in sites:
        ended_as(undisturbed, site)
    assert sum(len(site.blows) for site in sites) == SITES * KILLS
    assert len(hits(sites)) >= LEAST_HITS, told(sites)


async def trial(place: Place) -> list[Site]:
    dealer = random.Random(SEED)
    sites = [
        Site(f"killed-{SEED}-{n}", place.folder, place.workers, place.temporal, [Ledger("Ada")],
             random.Random(f"{SEED} {n}"))
        for n in range(SITES)
    ]  # fmt: skip
    # Over all sites each aim is used about equally often.
    order = dealer.sample(AIMS, len(AIMS))
    deck = [order[n % len(order)] for n in range(SITES * KILLS)]
    aims = [dealer.sample(deck[n::SITES], KILLS) for n in range(SITES)]
    for dealt in aims[:AT_THE_END]:
        dealt[-1] = at_the_end
    await asyncio.gather(*(killed(site, dealt) for site, dealt in zip(sites, aims, strict=True)))
    return sites


async def killed(site: Site, aims: list[Aim]) -> None:
    async with opened(site):
        # The first kill comes while the job is being prepared or soon after.
        await site.kill(aims[0])
        for aim in aims[1:]:
            await some_steps(site)
            await site.kill(aim)
        await site.finish()
