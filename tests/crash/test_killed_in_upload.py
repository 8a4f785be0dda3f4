"""`kill -9` of a worker within an upload to a bucket; another host, with its own root, goes on."""

import asyncio
import random
import shutil
from dataclasses import dataclass

import pytest

from activities.checkpoints import Root
from tests.buckets import conditional_server, create_bucket
from tests.crash import test_lost_host
from tests.crash.begun import Begun, Place
from tests.crash.site import Site
from tests.crash.test_lost_host import Pushed
from tests.crash.trial import SEED, opened
from tests.flawed_store import Flaw, FlawedStore, flawed_store
from tests.soak import soak

pytest.importorskip("obstore")
pytest.importorskip("moto")


@dataclass(frozen=True)
class Moment:
    """Where in an upload the worker is killed."""

    name: str
    flaw: Flaw
    word: str
    """Part of the object's path."""


MOMENTS = (
    Moment("within-a-pack", "half", "/packs/"),
    Moment("after-a-pack", "after", "/packs/"),
    Moment("before-the-list", "before", "/refs.json"),
    Moment("within-the-list", "half", "/refs.json"),
    Moment("after-the-list", "after", "/refs.json"),
)
KILLS = random.Random(SEED).sample(MOMENTS, soak(2, len(MOMENTS)))
PATIENCE = 90
"""Seconds until the upload."""


async def trial(place: Place) -> list[Site]:
    """Run the job on one host, undisturbed, and at the same time on hosts killed in an upload."""
    with conditional_server() as endpoint:
        stayed = bucket_site(place, "uploaded", endpoint)
        sites = []

        async def interrupt(moment: Moment) -> None:
            with flawed_store(endpoint) as store:
                site = bucket_site(place, moment.name, store.endpoint)
                sites.append(site)
                await kill_within_upload(site, store, moment)

        await asyncio.gather(test_lost_host.alone(stayed), *map(interrupt, KILLS))
    return [stayed, *sites]


def bucket_site(place: Place, name: str, endpoint: str) -> Site:
    """Return a site whose job pushes to a bucket of its own at this endpoint."""
    ledger = Pushed("Ada", phases=1, remote=create_bucket(endpoint))
    return Site(name, place.folder, place.workers, place.temporal, [ledger])


async def kill_within_upload(site: Site, store: FlawedStore, moment: Moment) -> None:
    """Kill the worker where the store hangs, and lose its root; another host ends the job."""
    async with opened(site):
        await site.progress(site.steps(), 3)
        store.break_requests(moment.flaw, moment.word, times=1)
        assert await asyncio.to_thread(store.is_met.wait, PATIENCE), site.name
        site.worker.kill()
        await asyncio.to_thread(site.worker.until_gone)
        store.release.set()
        shutil.rmtree(site.root.path)
        site.root = Root.open(site.folder / f"{site.name}-other", create=True)
        site.start_worker()
        await site.finish()


async def test_the_other_host_ends_the_job_as_the_undisturbed_one(begun: Begun) -> None:
    stayed, *sites = await begun(trial)
    assert len(sites) == len(KILLS)
    test_lost_host.check_sites([stayed, *sites])
