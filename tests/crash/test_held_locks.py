"""Locks that are never released, as by a frozen worker, stop no step."""

import asyncio
from contextlib import ExitStack

from activities.checkpoints.locks import file_lock
from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.site import Site
from tests.crash.trial import ended_as, opened, some_steps

LOCKS = ("longhaul-refs.lock", "longhaul-pack.lock", "longhaul-projection.lock")
STEPS = 8
"""Enough to pass a phase end, where all locks are needed."""
MOST_SECONDS = 30
"""Far less than waiting for each lock to time out, attempt after attempt."""


async def test_the_job_goes_on_and_the_folder_catches_up_once_they_are_free(
    begun: Begun, undisturbed: Site
) -> None:
    ended_as(undisturbed, await begun(trial))


async def trial(place: Place) -> Site:
    site = Site("held", place.folder, place.workers, place.temporal, [Ledger("Ada")])
    async with opened(site):
        await some_steps(site)
        with ExitStack() as locks:
            for name in LOCKS:
                path = site.root.repository(site.job_id("Ada")) / name
                locks.enter_context(file_lock(path, seconds=10))
            async with asyncio.timeout(MOST_SECONDS):
                await site.progress(site.steps(), STEPS)
        await site.finish()
    return site
