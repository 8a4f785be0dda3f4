"""Many jobs at once, their workers killed and frozen, their servers killed: what came of them.

All runs together, because a recovery is mostly waiting: for heartbeats to be missed, for a dead
worker's queue to be given up. Where the blows fall is up to a seed; `LONGHAUL_CRASH_SEED` takes
one again that failed, as far as timing allows, and `LONGHAUL_CRASH_ROUNDS` does more of it all.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.crash import aims
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.crash.site import Site

ROUNDS = int(os.environ.get("LONGHAUL_CRASH_ROUNDS", "1"))
KILLS = 30 * ROUNDS
SERVER_KILLS = 5 * ROUNDS
FREEZES = 5 * ROUNDS
KILLS_A_SITE = 3
PAIR = (Ledger("Ada"), Ledger("Ben"))
MOST_STEPS = 6
"""Between a recovery and the next blow: few enough for all blows to fall into the job."""
Disturb = Callable[[Site], Awaitable[None]]


@dataclass
class Campaign:
    """The sites by what was done to them."""

    seed: int
    undisturbed: list[Site] = field(default_factory=list)
    killed: list[Site] = field(default_factory=list)
    frozen: list[Site] = field(default_factory=list)
    without_server: list[Site] = field(default_factory=list)

    @property
    def disturbed(self) -> list[Site]:
        return [*self.killed, *self.frozen, *self.without_server]


@asynccontextmanager
async def serving(
    folder: Path, nursery: Nursery, server: TemporalServer, name: str,
    ledgers: tuple[Ledger, ...] = PAIR, seed: object = None,
) -> AsyncIterator[Site]:  # fmt: skip
    """A site whose jobs have begun."""
    site = Site(name, folder, nursery, server, ledgers, random.Random(f"{seed} {name}"))
    with site.model:
        site.start_worker()
        await site.start_jobs(await server.client())
        yield site


async def campaign(folder: Path, nursery: Nursery, seed: int) -> Campaign:
    """Run it all."""
    made = Campaign(seed)
    async with AsyncExitStack() as stack:
        shared = await stack.enter_async_context(a_server(folder / "server"))

        async def run(kind: list[Site], name: str, disturb: Disturb | None = None, **how) -> None:
            how = {"server": shared, **how}
            async with serving(folder, nursery, name=name, seed=seed, **how) as site:
                kind.append(site)
                if disturb:
                    await disturb(site)
                await site.finish()

        await asyncio.gather(*runs)
    return made
