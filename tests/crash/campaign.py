"""Many jobs at once: their workers are killed and frozen, their servers killed.

All of it runs together, because a recovery is mostly waiting: until missed heartbeats count, until
a dead worker's queue is given up.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash import aims
from tests.crash.aims import AIMS, Aim
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.crash.site import Site

LEDGER = Ledger("Ada")
KILLED_SITES = 8
KILLS_A_SITE = 4
FREEZES = (
    aims.during_a_model_call,
    aims.during_a_checkpoint,
    aims.after_the_effect,
    aims.while_the_folder_is_brought_up_to_date,
    aims.at_a_phase_end,
)
SERVER_KILLS = (3, 2)
"""Of each of two servers; every third kill takes the worker along."""
MOST_STEPS = 4
"""Between a recovery and the next blow: few enough for all blows to fall within the job."""
MOST_AWAY = 1.5
"""Seconds until a killed server is started again."""
Disturb = Callable[[Site], Awaitable[None]]


@dataclass
class Campaign:
    """The sites, by what was done to them."""

    seed: int
    undisturbed: list[Site] = field(default_factory=list)
    killed: list[Site] = field(default_factory=list)
    frozen: list[Site] = field(default_factory=list)
    serverless: list[Site] = field(default_factory=list)

    @property
    def sites(self) -> list[Site]:
        return [*self.undisturbed, *self.killed, *self.frozen, *self.serverless]


@asynccontextmanager
async def opened(site: Site) -> AsyncIterator[Site]:
    """A site whose worker and jobs have begun."""
    with site.model:
        site.start_worker()
        await site.start_jobs(await site.server.client())
        yield site


async def run(folder: Path, nursery: Nursery, server: TemporalServer, seed: int) -> Campaign:
    """A campaign; the blows follow from the seed as far as timing lets them.

    Args:
        folder: For all data of it.
        server: Serves all jobs but those whose server is killed.
    """
    made = Campaign(seed)
    dealer = random.Random(seed)

    async def play(
        kind: list[Site], name: str, disturb: Disturb, on: TemporalServer = server
    ) -> None:  # fmt: skip
        numbers = random.Random(f"{seed} {name}")
        async with opened(Site(f"{name}-{seed}", folder, nursery, on, [LEDGER], numbers)) as site:
            kind.append(site)
            await disturb(site)
            await site.finish()

    plays = [play(made.undisturbed, "undisturbed", _nothing)]
    for number in range(KILLED_SITES):
        # Each site gets aims of its own kinds, and all sites together all of them equally often.
        dealt = [AIMS[(number + KILLED_SITES * n) % len(AIMS)] for n in range(KILLS_A_SITE)]
        dealer.shuffle(dealt)
        plays.append(play(made.killed, f"killed-{number}", _kills(dealt)))
    for number, aim in enumerate(FREEZES):
        plays.append(play(made.frozen, f"frozen-{number}", _freeze(aim)))
    async with AsyncExitStack() as servers:
        for number, kills in enumerate(SERVER_KILLS):
            doomed = servers.enter_context(TemporalServer(folder / f"server-{seed}-{number}"))
            dealt = dealer.sample(AIMS, kills)
            plays.append(play(made.serverless, f"serverless-{number}", _server(dealt), doomed))
        await asyncio.gather(*plays)
    return made


async def _nothing(site: Site) -> None:
    """Leaves the site alone."""


def _kills(dealt: list[Aim]) -> Disturb:
    async def disturb(site: Site) -> None:
        for aim in dealt:
            await site.progress(site.steps(), site.random.randint(1, MOST_STEPS))
            await site.kill(aim)

    return disturb


def _freeze(aim: Aim) -> Disturb:
    async def disturb(site: Site) -> None:
        await site.progress(site.steps(), site.random.randint(1, MOST_STEPS))
        await site.freeze(aim)

    return disturb


def _server(dealt: list[Aim]) -> Disturb:
    async def disturb(site: Site) -> None:
        for number, aim in enumerate(dealt):
            await site.progress(site.steps(), site.random.randint(1, MOST_STEPS))
            away = site.random.uniform(0, MOST_AWAY)
            await site.kill_server(aim, away, worker_too=number % 3 == 2)

    return disturb
