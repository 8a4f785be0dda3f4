"""Workers on separate workspaces roots that share a remote for checkpoints."""

from __future__ import annotations

import subprocess
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.checkpoints.remote import refs_of
from activities.rehearsal import Answer, Request
from engine.connection import connect
from tests.crash.model import Ledger
from tests.workflows.serving import serving

LEDGER = Ledger("Ada", phases=1)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    return path


class Told:
    """The model of one host, which counts."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Answer:
        self.asked[str(request["messages"])] += 1
        return LEDGER(request)


def start(remote: Path, **settings: object) -> dict[str, Any]:
    return LEDGER.start(**{"workspace.remote": f"file://{remote}", **settings})


async def another(client: Client) -> Client:
    """A connection like this: each takes one worker of a task queue."""
    return await connect(client.service_client.config.target_host)


def refs(remote: Path, job: str) -> list[str]:
    listed = subprocess.run(
        ["git", "--git-dir", str(remote), "for-each-ref", "--format=%(refname)", refs_of(job)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return listed.split()


async def test_a_job_that_goes_to_and_fro_ends_as_one_that_stays(
    temporal: Client, root: Root, tmp_path: Path, remote: Path
) -> None:
    other = Root.open(tmp_path / "other", create=True)
    third = Root.open(tmp_path / "third", create=True)
    async with serving(temporal, third, LEDGER) as jobs:
        stayed = await jobs.result(await jobs.start(start(remote)))
    here, there = Told(), Told()
    async with AsyncExitStack() as hosts:
        # Without a cache each workflow task goes to either of them, local activities and all.
        first = await hosts.enter_async_context(
            serving(temporal, root, here, queue="hosts", max_cached_workflows=0)
        )
        await hosts.enter_async_context(
            serving(await another(temporal), other, there, queue="hosts", max_cached_workflows=0)
        )
        handle = await first.start(start(remote))
        result = await first.result(handle)
        status = await handle.query("status")
    assert (result["status"], result["tree"]) == ("completed", stayed["tree"]), status["notices"]
    assert not [line for line in status["notices"] if "is lost" in line], status["notices"]
    assert here.asked, there.asked
    assert (here.asked + there.asked).total() == len(here.asked | there.asked)
    took_part = {ref.rpartition("/")[2] for ref in refs(remote, handle.id) if "/runs/" in ref}
    assert took_part == {root.id, other.id}
