"""A worker frozen past its time-outs while another one serves the job, then woken."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from tests.crash import aims
from tests.crash.aims import Aim
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.crash.site import Site
from tests.crash.trial import ROUNDS, ended_as, hits, opened, some_steps

SOON, LATER = 1, 9
"""Steps of the other worker, after which the frozen one wakes: in the same phase or in another."""
FREEZES = (
    (aims.during_a_model_call, LATER),
    (aims.during_a_checkpoint, LATER),
    (aims.after_the_effect, SOON),
    (aims.while_the_folder_is_brought_up_to_date, SOON),
    (aims.at_a_phase_end, SOON),
)


@pytest.mark.parametrize("seed", ROUNDS)
async def test_the_job_ends_as_the_undisturbed_one(
    seed: int, tmp_path: Path, workers: Nursery, temporal: TemporalServer, undisturbed: Site
) -> None:
    sites = [
        Site(f"frozen-{seed}-{n}", tmp_path, workers, temporal, [Ledger("Ada")],
             random.Random(f"{seed} {n}"))
        for n in range(len(FREEZES))
    ]  # fmt: skip
    await asyncio.gather(
        *(frozen(site, aim, steps) for site, (aim, steps) in zip(sites, FREEZES, strict=True))
    )
    for site in sites:
        ended_as(undisturbed, site, seed)
    assert len(hits(sites)) >= 4, [site.blows for site in sites]


async def frozen(site: Site, aim: Aim, steps: int) -> None:
    async with opened(site):
        await some_steps(site)
        await site.freeze(aim, steps)
        await site.finish()
