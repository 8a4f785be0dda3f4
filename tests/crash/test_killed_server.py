"""`kill -9` of the Temporal server within a step, alone or with the worker."""

import asyncio
import random

from tests.crash.aims import AIMS, Aim
from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.processes import TemporalServer
from tests.crash.site import Site
from tests.crash.trial import SEED, ended_as, hits, opened, some_steps, told
from tests.soak import soak

KILLS = soak((2,), (3, 2))
"""For each of the servers, side by side; the last kill of each includes the worker."""
MOST_AWAY = 1.5
"""Seconds until the server is started again."""


async def test_the_job_ends_as_the_undisturbed_one(begun: Begun, undisturbed: Site) -> None:
    sites = await begun(trial)
    for site in sites:
        ended_as(undisturbed, site)
    assert len(hits(sites)) >= sum(KILLS) - 1, told(sites)


async def trial(place: Place) -> list[Site]:
    sites = [
        Site(f"serverless-{SEED}-{n}", place.folder, place.workers,
             TemporalServer(place.folder / f"server-{n}"), [Ledger("Ada")],
             random.Random(f"{SEED} {n}"))
        for n in range(len(KILLS))
    ]  # fmt: skip
    aims = [site.random.sample(AIMS, kills) for site, kills in zip(sites, KILLS, strict=True)]
    await asyncio.gather(*(killed(site, dealt) for site, dealt in zip(sites, aims, strict=True)))
    return sites


async def killed(site: Site, aims: list[Aim]) -> None:
    with site.server:
        async with opened(site):
            for number, aim in enumerate(aims, 1):
                await some_steps(site)
                away = site.random.uniform(0, MOST_AWAY)
                await site.kill_server(aim, away, worker_too=number == len(aims))
            await site.finish()
