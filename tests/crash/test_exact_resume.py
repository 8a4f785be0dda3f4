"""Killed, frozen or without a server: a job ends as if nothing had happened."""

from __future__ import annotations

from collections import Counter

import pytest

from activities.checkpoints import open_checkpoints
from activities.snapshot import Snapshot
from tests.crash.campaign import FREEZES, KILLED_SITES, KILLS_A_SITE, SERVER_KILLS, Campaign
from tests.crash.model import LEDGER
from tests.crash.site import Site

KINDS = ("killed", "frozen", "serverless")


def told(site: Site) -> str:
    """What was done to a site, for messages."""
    return f"{site.name}: {site.blows}"


@pytest.mark.parametrize(
    ("kind", "blows"),
    [("killed", KILLED_SITES * KILLS_A_SITE), ("frozen", len(FREEZES)),
     ("serverless", sum(SERVER_KILLS))],
)  # fmt: skip
def test_every_blow_was_dealt_and_most_hit_the_moment_they_were_aimed_at(
    campaign: list[Campaign], kind: str, blows: int
) -> None:
    for one in campaign:
        dealt = [blow for site in getattr(one, kind) for blow in site.blows]
        assert len(dealt) == blows
        assert sum(blow.hit for blow in dealt) > 0.8 * blows, dealt


@pytest.mark.parametrize("kind", KINDS)
def test_the_final_tree_is_the_undisturbed_one(campaign: list[Campaign], kind: str) -> None:
    for one in campaign:
        [undisturbed] = one.undisturbed
        for site in getattr(one, kind):
            for name, result in site.results.items():
                assert result["tree"] == undisturbed.results[name]["tree"], told(site)
                assert result["status"] == "completed"


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_asked_the_same_and_at_most_once_more_per_blow(
    campaign: list[Campaign], kind: str
) -> None:
    for one in campaign:
        [undisturbed] = one.undisturbed
        for site in getattr(one, kind):
            for name, asked in site.asked.items():
                assert asked.keys() == undisturbed.asked[name].keys(), told(site)
                assert (asked - undisturbed.asked[name]).total() <= len(site.blows), told(site)


def test_no_append_is_doubled_or_lost(campaign: list[Campaign]) -> None:
    for one in campaign:
        for site in one.sites:
            for ledger in site.ledgers:
                path = site.root.workspace(site.job_id(ledger.name)) / LEDGER
                assert path.read_text() == ledger.text, told(site)


def test_the_folder_is_that_of_the_final_tree(campaign: list[Campaign]) -> None:
    for one in campaign:
        for site in one.sites:
            for name, result in site.results.items():
                job = site.job_id(name)
                snapshot = Snapshot.load(open_checkpoints(site.root, job), result["checkpoint"])
                folder = site.root.workspace(job)
                kept = {
                    entry.path: None if entry.kind == "folder" else snapshot.files.read(entry.path)
                    for entry in snapshot.files.walk()
                }
                found = {
                    path.relative_to(folder).as_posix(): None
                    if path.is_dir()
                    else path.read_bytes()
                    for path in folder.rglob("*")
                    if path.is_file() or not any(path.iterdir())
                }
                assert found == kept, told(site)
                assert not site.root.lost_found(job).exists(), told(site)


def test_the_undisturbed_job_asks_for_nothing_twice(campaign: list[Campaign]) -> None:
    for one in campaign:
        for site in one.undisturbed:
            for asked in site.asked.values():
                assert set(asked.values()) == {1}


def test_print(campaign):
    for one in campaign:
        for site in one.sites:
            print(
                site.name,
                [(b.aim, b.hit, round(b.recovery, 1)) for b in site.blows],
                Counter({n: sum(a.values()) - len(a) for n, a in site.asked.items()}),
            )
