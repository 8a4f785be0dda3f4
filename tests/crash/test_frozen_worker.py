"""A worker frozen past its time-outs while another serves the job, and then woken."""

import asyncio
import random

from tests.crash import aims
from tests.crash.aims import Aim
from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.site import Site
from tests.crash.trial import SEED, ended_as, hits, opened, some_steps, told
from tests.soak import soak

SOON, LATER = 1, 7
"""Steps of the other worker before the frozen one wakes: in the same phase or in a later one."""
FREEZES = (
    (aims.during_a_model_call, LATER),
    (aims.during_a_checkpoint, LATER),
    (aims.after_the_effect, SOON),
    (aims.while_the_folder_is_brought_up_to_date, SOON),
    (aims.at_a_phase_end, SOON),
)
TRIED = soak(2, 5)
"""Number of freezes, drawn from these."""


async def test_the_job_ends_as_the_undisturbed_one(begun: Begun, undisturbed: Site) -> None:
    sites = await begun(trial)
    for site in sites:
        ended_as(undisturbed, site)
    assert len(hits(sites)) >= TRIED - 1, told(sites)


async def trial(place: Place) -> list[Site]:
    freezes = random.Random(SEED).sample(FREEZES, TRIED)
    sites = [
        Site(f"frozen-{SEED}-{n}", place.folder, place.workers, place.temporal, [Ledger("Ada")],
             random.Random(f"{SEED} {n}"))
        for n in range(TRIED)
    ]  # fmt: skip
    await asyncio.gather(
        *(frozen(site, aim, steps) for site, (aim, steps) in zip(sites, freezes, strict=True))
    )
    return sites


async def frozen(site: Site, aim: Aim, steps: int) -> None:
    async with opened(site):
        await some_steps(site)
        await site.freeze(aim, steps)
        await site.finish()
