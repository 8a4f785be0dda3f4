"""What all crash tests share: the seed, jobs already begun, and what must hold in the end."""

import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from activities.checkpoints import Root, open_checkpoints
from activities.job.snapshot import Snapshot
from tests.crash.model import LEDGER
from tests.crash.site import Blow, Site

# All processes of a test run use the same seed; with it the whole run can be repeated.
_RUN = random.Random(os.environ.get("PYTEST_XDIST_TESTRUNUID"))
SEED = int(os.environ.get("LONGHAUL_CRASH_SEED") or _RUN.randrange(1, 1_000_000))
"""Decides what is done when, as far as timing allows. It is new each time, so that other moments
are tried; the variable repeats a seed that failed.
"""
MOST_STEPS = 3
"""Steps between a recovery and the next disturbance: few enough for all to fall within the job."""


@asynccontextmanager
async def opened(site: Site) -> AsyncIterator[Site]:
    """Open a site whose worker and jobs have begun."""
    with site.model:
        client = await site.server.client()
        site.start_worker()
        await site.start_jobs(client)
        yield site


async def some_steps(site: Site) -> None:
    """Let the jobs take a few steps."""
    await site.progress(site.steps(), site.random.randint(1, MOST_STEPS))


def hits(sites: list[Site]) -> list[Blow]:
    """Return the disturbances that fell at the intended moment, before the work had ended."""
    return [blow for site in sites for blow in site.blows if blow.hit]


def told(sites: list[Site]) -> str:
    """Describe the blows, for a message."""
    return f"seed {SEED}: {[site.blows for site in sites]}"


def ended_as(undisturbed: Site, site: Site) -> None:
    """Check that every job of the site ended like the undisturbed one, and left the same behind."""
    did = f"{site.name}, {told([site])}"
    for ledger in site.ledgers:
        result, requests = site.results[ledger.name], site.asked[ledger.name]
        folder = site.root.workspace(site.job_id(ledger.name))
        assert result["status"] == "completed", did
        assert (folder / LEDGER).read_text() == ledger.text, did
        assert result["tree"] == undisturbed.results[ledger.name]["tree"], did
        assert requests.keys() == undisturbed.asked[ledger.name].keys(), did
        more = requests.total() - undisturbed.asked[ledger.name].total()
        assert more <= len(site.blows), f"{more} model calls more; {did}"
        differing = lagging(site.root, site.job_id(ledger.name), result["checkpoint"])
        assert not differing, f"{differing}; {did}"
        assert not site.root.lost_found(site.job_id(ledger.name)).exists(), did


def lagging(root: Root, job: str, commit: str) -> list[str]:
    """Return paths where the visible folder differs from the job's last checkpoint."""
    differing = on_disk(root, job).items() ^ in_tree(root, job, commit).items()
    return sorted({path for path, _ in differing})


def in_tree(root: Root, job: str, commit: str) -> dict[str, bytes | None]:
    """Return the files of a job's checkpoint by path; None for an empty folder."""
    files = Snapshot.load(open_checkpoints(root, job), commit).files
    return {
        entry.path: None if entry.kind == "folder" else files.read(entry.path)
        for entry in files.walk()
    }


def on_disk(root: Root, job: str) -> dict[str, bytes | None]:
    """Return the same for the visible folder, without `errors/`, which is in no checkpoint."""
    folder = root.workspace(job)
    return {
        path.relative_to(folder).as_posix(): None if path.is_dir() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() or not any(path.iterdir())
        if path.relative_to(folder).parts[0] != "errors"
    }
