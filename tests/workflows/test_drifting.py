"""A model that drifts gets nowhere by it: every item is made, or the job waits and says why."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.rehearsal.drifting import ITEMS, Drifting, content, even, path
from tests.workflows.serving import Jobs, serving

WAITS = {"stuck", "review", "rewinds"}
"""What a job may wait for that its model drives in circles."""


@dataclass(frozen=True)
class Ended:
    status: str
    waiting: str | None
    made: int
    calls: int


async def run(jobs: Jobs, model: Drifting, seed: int) -> Ended:
    handle = await jobs.start(
        {
            "agent": "generalist",
            "instructions": f"Make every item. Seed {seed}.",
            "items": [f"Item {n}" for n in range(1, ITEMS + 1)],
        }
    )
    async with asyncio.timeout(600):
        while True:
            status: dict[str, Any] = await handle.query("status")
            if status["status"] != "running":
                break
            await asyncio.sleep(0.3)
    files = jobs.snapshot(handle, status["checkpoint"]).files
    made = sum(
        files.entry(path(n)) is not None and files.read(path(n)) == content(n).encode()
        for n in range(1, ITEMS + 1)
    )
    if status["status"] == "waiting":
        await handle.terminate()
    return Ended(status["status"], status["waiting_for"], made, model.calls[seed])


@pytest.mark.parametrize("rate", [0.2, 0.5])
async def test_every_item_is_made_or_the_job_waits(
    temporal: Client, root: Root, rate: float
) -> None:
    steady, drifting = Drifting({}), Drifting(even(rate))
    async with serving(temporal, root, steady) as jobs:
        undrifted = await run(jobs, steady, 0)
    assert (undrifted.status, undrifted.made) == ("completed", ITEMS)
    async with serving(temporal, root, drifting) as jobs:
        ends = await asyncio.gather(*(run(jobs, drifting, seed) for seed in range(1, 7)))
    for end in ends:
        if end.status == "completed":
            assert end.made == ITEMS
        else:
            assert end.status == "waiting"
            assert end.waiting in WAITS
    if rate <= 0.2:
        completed = [end for end in ends if end.status == "completed"]
        assert len(completed) == len(ends)
        calls = sum(end.calls for end in completed) / len(completed)
        assert calls <= 1.5 * undrifted.calls
