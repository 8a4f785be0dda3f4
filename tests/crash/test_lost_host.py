"""A host is lost with its disk; another, with its own root, resumes from the remote."""

import asyncio
import random
import shutil
import subprocess
from dataclasses import dataclass
from typing import Any

from activities.checkpoints import Root, open_checkpoints
from activities.job.snapshot import Snapshot
from tests.crash import aims
from tests.crash.aims import Aim
from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.site import Site
from tests.crash.trial import SEED, in_tree, on_disk, opened
from tests.soak import soak

AIMS = (aims.during_a_model_call, aims.during_a_checkpoint, aims.at_a_phase_end)
LOSSES = random.Random(SEED).sample(AIMS, soak(1, 3))
MOST_REPEATED = 2
"""Model calls repeated for each lost host: that of the interrupted step, and one in progress."""


@dataclass(frozen=True)
class Pushed(Ledger):
    """A ledger whose checkpoints are pushed to a remote."""

    remote: str = ""

    def start(self, **settings: object) -> dict[str, Any]:
        return super().start(**{"workspace.remote": self.remote, **settings})


async def test_the_other_host_ends_the_job_as_the_undisturbed_one(begun: Begun) -> None:
    check_sites(await begun(trial))


def check_sites(trial: list[Site]) -> None:
    """Compare the sites that lost their hosts with the one that kept it."""
    stayed, *sites = trial
    assert set(stayed.asked["Ada"].values()) == {1}
    for site in sites:
        result = site.results["Ada"]
        assert result["status"] == "completed"
        tree = stayed.results["Ada"]["tree"]
        assert tree_but_for_usage(site, stayed) == tree, differing(site, stayed)
        assert site.asked["Ada"].keys() == stayed.asked["Ada"].keys(), site.name
        more = site.asked["Ada"].total() - stayed.asked["Ada"].total()
        assert more <= MOST_REPEATED * 2, f"{more} model calls more on {site.name}"
        repeat_count = more_than(result, stayed.results["Ada"])
        assert repeat_count <= more, f"{repeat_count} of {more} repeated calls are counted"
        job = site.job_id("Ada")
        assert on_disk(site.root, job) == in_tree(site.root, job, result["checkpoint"])


async def trial(place: Place) -> list[Site]:
    """Run the job on one host, undisturbed, and at the same time on hosts that are lost."""
    path = place.folder / "checkpoints.git"
    await asyncio.to_thread(
        subprocess.run, ["git", "init", "--quiet", "--bare", str(path)], check=True
    )
    return await lose_hosts(place, f"file://{path}")


async def lose_hosts(place: Place, remote: str, suffix: str = "") -> list[Site]:
    """Return the sites of a trial with that remote; the suffix keeps their names apart."""
    ledger = Pushed("Ada", phases=1, remote=remote)
    stayed, *sites = [
        Site(
            f"{name}{suffix}",
            place.folder,
            place.workers,
            place.temporal,
            [ledger],
            random.Random(SEED + n),
        )
        for n, name in enumerate(["stayed", *(aim.__name__ for aim in LOSSES)])
    ]
    await asyncio.gather(
        alone(stayed), *(lost(site, aim) for site, aim in zip(sites, LOSSES, strict=True))
    )
    return [stayed, *sites]


async def alone(site: Site) -> None:
    async with opened(site):
        await site.finish()


def tree_but_for_usage(site: Site, stayed: Site) -> str:
    """Return the job's last tree as it would be if no call had been paid for twice, and with the
    remote's address of the other site.
    """
    completion = "output/completion.json"
    snapshot, remote = last(site), last(stayed).config.workspace.remote
    workspace = snapshot.config.workspace.model_copy(update={"remote": remote})
    snapshot.pin_config(snapshot.config.model_copy(update={"workspace": workspace}))
    snapshot.files = snapshot.files.write(completion, last(stayed).files.read(completion))
    return snapshot.comparable_tree


def differing(site: Site, stayed: Site) -> str:
    """Describe how the last trees differ, for a message."""
    paths = sorted({path for path, _ in files(site).items() ^ files(stayed).items()})
    state, before = last(site).state, last(stayed).state
    return f"{site.name}: {paths}, {state} instead of {before}"


def files(site: Site) -> dict[str, bytes | None]:
    return in_tree(site.root, site.job_id("Ada"), site.results["Ada"]["checkpoint"])


def last(site: Site) -> Snapshot:
    checkpoints = open_checkpoints(site.root, site.job_id("Ada"))
    return Snapshot.load(checkpoints, site.results["Ada"]["checkpoint"])


def more_than(result: dict[str, Any], other: dict[str, Any]) -> int:
    """Return how many more model calls one result counts than the other."""
    calls: int = result["usage"]["model_calls"] - other["usage"]["model_calls"]
    return calls


async def lost(site: Site, aim: Aim) -> None:
    """Lose two hosts: first the one that began the job, then the one that took it over."""
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
