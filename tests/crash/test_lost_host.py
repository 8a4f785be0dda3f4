"""A host is lost with its disk, and one with a root of its own goes on from the remote."""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Root, open_checkpoints
from activities.snapshot import Snapshot
from tests.crash import aims
from tests.crash.aims import Aim
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.crash.site import Site
from tests.crash.trial import SEED, in_tree, on_disk, opened

LOSSES = (aims.during_a_model_call, aims.during_a_checkpoint, aims.at_a_phase_end)
MOST_REPEATED = 2
"""Model calls for each lost host: that of the step in flight, and one that was under way."""


@dataclass(frozen=True)
class Pushed(Ledger):
    """A ledger whose checkpoints go to a remote."""

    remote: str = ""

    def start(self, **settings: object) -> dict[str, Any]:
        return super().start(**{"workspace.remote": self.remote, **settings})


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Pushed:
    path = tmp_path_factory.mktemp("remote") / "checkpoints.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    return Pushed("Ada", phases=1, remote=f"file://{path}")


@pytest.fixture(scope="module")
async def stayed(
    tmp_path_factory: pytest.TempPathFactory,
    workers: Nursery,
    temporal: TemporalServer,
    ledger: Pushed,
) -> AsyncIterator[Site]:
    """The same job on one host, undisturbed."""
    site = Site("stayed", tmp_path_factory.mktemp("stayed"), workers, temporal, [ledger])
    async with opened(site):
        await site.finish()
    assert set(site.asked["Ada"].values()) == {1}
    yield site


async def test_the_other_host_ends_the_job_as_the_undisturbed_one(
    tmp_path: Path, workers: Nursery, temporal: TemporalServer, stayed: Site, ledger: Pushed
) -> None:
    sites = [
        Site(f"lost-{n}", tmp_path, workers, temporal, [ledger], random.Random(SEED + n))
        for n in range(len(LOSSES))
    ]
    await asyncio.gather(*(lost(site, aim) for site, aim in zip(sites, LOSSES, strict=True)))
    for site in sites:
        result = site.results["Ada"]
        assert result["status"] == "completed"
        assert tree_but_for_usage(site, stayed) == stayed.results["Ada"]["tree"], site.name
        assert site.asked["Ada"].keys() == stayed.asked["Ada"].keys(), site.name
        more = site.asked["Ada"].total() - stayed.asked["Ada"].total()
        assert more <= MOST_REPEATED * 2, f"{more} model calls more on {site.name}"
        told = more_than(result, stayed.results["Ada"])
        assert told <= more, f"{told} of {more} repeated calls are counted"
        job = site.job_id("Ada")
        assert on_disk(site.root, job) == in_tree(site.root, job, result["checkpoint"])


def tree_but_for_usage(site: Site, stayed: Site) -> str:
    """The job's last tree as it would be if it had not paid for some calls twice."""
    completion = "output/completion.json"
    snapshot = last(site)
    snapshot.files = snapshot.files.write(completion, last(stayed).files.read(completion))
    return snapshot.compared


def last(site: Site) -> Snapshot:
    checkpoints = open_checkpoints(site.root, site.job_id("Ada"))
    return Snapshot.load(checkpoints, site.results["Ada"]["checkpoint"])


def more_than(result: dict[str, Any], other: dict[str, Any]) -> int:
    """Model calls that one result counts more than the other."""
    calls: int = result["usage"]["model_calls"] - other["usage"]["model_calls"]
    return calls


async def lost(site: Site, aim: Aim) -> None:
    """Twice: first the host that began the job, then the one that took it over."""
    async with opened(site):
        for number in (1, 2):
            await site.progress(site.steps(), 3)
            await site.aim(aim)
            site.worker.kill()
            await asyncio.to_thread(site.worker.until_gone)
            shutil.rmtree(site.root.path)
            site.root = Root.open(site.folder / f"{site.name}-{number}", create=True)
            site.start_worker()
        await site.finish()
