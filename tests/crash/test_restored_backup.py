"""Backups as the manual describes: a job resumes from copies of the root and the database."""

import asyncio
import random
import shutil
from pathlib import Path

from tests.crash.model import LEDGER, Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.crash.site import Site
from tests.crash.trial import SEED, opened

STEPS = 4
"""Steps before a copy is made, and again before all is lost: within one job."""
ADA = Ledger("Ada", phases=1)


async def test_a_job_goes_on_from_copies_that_belong_together(
    tmp_path: Path, workers: Nursery
) -> None:
    server = TemporalServer(tmp_path / "server")
    site = Site("kept", tmp_path, workers, server, [ADA], random.Random(SEED))
    with server:
        async with opened(site):
            await site.progress(site.steps(), STEPS)
            await end(site)
            server.kill()
            copies = [copied(site.root.path), copied(server.folder)]
            request_count = len(site.asked["Ada"])
            await begin(site)
            await site.progress(site.steps(), STEPS)
            site.worker.kill()
            await asyncio.to_thread(site.worker.until_gone)
            # Whatever it had reached before it was killed.
            lost = len(site.asked["Ada"]) - request_count
            server.kill()
            for copy in copies:
                restore(copy)
            await begin(site)
            await site.finish()
    assert site.results["Ada"]["status"] == "completed"
    assert (site.root.workspace(site.job_id("Ada")) / LEDGER).read_text() == ADA.text
    again = site.asked["Ada"].total() - len(site.asked["Ada"])
    assert 0 < again <= lost + STEPS, "what was done since the copy is done again, and no more"


async def end(site: Site) -> None:
    """Tell the worker to stop, and wait until it has."""
    site.worker.drain()
    await asyncio.to_thread(site.worker.until_gone)


async def begin(site: Site) -> None:
    site.server.start()
    await site.server.client()
    site.start_worker()


def copied(folder: Path) -> Path:
    return Path(shutil.copytree(folder, folder.with_name(f"{folder.name}-copy"), symlinks=True))


def restore(copy: Path) -> None:
    """Delete the folder and restore it from its copy."""
    folder = copy.with_name(copy.name.removesuffix("-copy"))
    shutil.rmtree(folder)
    copy.rename(folder)
