"""Workers killed and frozen, and the server killed, over the Responses API: its strict provider
refuses nothing, and the jobs end as if nothing had happened."""

import asyncio
import random

from tests.crash.aims import AIMS
from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.processes import TemporalServer
from tests.crash.site import Site
from tests.crash.test_frozen_worker import FREEZES, frozen
from tests.crash.test_killed_server import killed as server_killed
from tests.crash.test_killed_worker import killed
from tests.crash.trial import SEED, ended_as, hits, opened, told
from tests.soak import soak

KILLED = soak(1, 4)
"""Sites whose worker is killed; one more has its worker frozen."""
KILLS = soak(2, 4)
"""Kills of each of these workers."""
SERVER_KILLS = soak(1, 2)
"""Kills of the server of one further site."""


async def test_the_job_ends_as_the_undisturbed_one(begun: Begun) -> None:
    undisturbed, *sites = await begun(trial)
    for site in sites:
        ended_as(undisturbed, site)
    assert sum(len(site.blows) for site in sites) == KILLED * KILLS + 1 + SERVER_KILLS
    assert hits(sites), told(sites)
    for site in (undisturbed, *sites):
        assert site.provider.responses.refusals == []
        # The model's reasoning is sent back, by whichever worker.
        sent = [item for one in site.provider.responses.requests for item in one["input"]]
        assert any(item.get("type") == "reasoning" for item in sent)


async def trial(place: Place) -> list[Site]:
    dealer = random.Random(f"{SEED} responses")
    killed_names = [f"killed-responses-{SEED}-{n}" for n in range(KILLED)]
    names = ["undisturbed-responses", f"frozen-responses-{SEED}",
             f"serverless-responses-{SEED}", *killed_names]  # fmt: skip
    server = TemporalServer(place.folder / "server-responses")
    sites = [
        Site(name, place.folder, place.workers,
             server if name.startswith("serverless") else place.temporal, [Ledger("Ada")],
             random.Random(f"{SEED} {name}"), has_responses=True)
        for name in names
    ]  # fmt: skip
    aims = [dealer.sample(AIMS, KILLS) for _ in range(KILLED)]
    await asyncio.gather(
        left_alone(sites[0]),
        frozen(sites[1], *dealer.choice(FREEZES)),
        server_killed(sites[2], dealer.sample(AIMS, SERVER_KILLS)),
        *map(killed, sites[3:], aims),
    )
    return sites


async def left_alone(site: Site) -> None:
    async with opened(site):
        await site.finish()
