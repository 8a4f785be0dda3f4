"""A drifting model gains nothing: every item is made, or the job waits and says why.

`python -m benchmarks.drift --seeds 200` does the same with more seeds, and compares it with a plain
loop.
"""

import asyncio

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from benchmarks.drift import Ended, drift_alone, drift_as_job, serve_drifting_model
from benchmarks.drifting_model import ITEMS, PER_PHASE, Drifting, even_drift_rates
from tests.brief import BRIEFEST
from tests.soak import soak

WAITS = {"stuck", "review", "rewinds"}
"""What a job may wait for if its model goes in circles."""
SEEDS = soak(range(1, 2), range(1, 6))
MADE, LISTED = soak((6, 2), (ITEMS, PER_PHASE))
"""Number of items of a job, and how many of them a phase makes: three phases either way."""

FEW: dict[str, object] = soak({**BRIEFEST, "limits.min_todos": 2}, {})


@pytest.fixture(scope="module")
async def undrifted(temporal: Client, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    root = Root.open(tmp_path_factory.mktemp("steady") / "root", create=True)
    steady = Drifting({}, MADE, LISTED)
    async with serve_drifting_model(temporal, root, steady, "steady"):
        end = await drift_as_job(temporal, root, "steady", steady, 0, set=FEW)
    assert (end.status, end.made) == ("completed", MADE)
    return end


@pytest.mark.parametrize("rate", [0.2, 0.5])
async def test_every_item_is_made_or_the_job_waits(
    temporal: Client, root: Root, undrifted: Ended, rate: float
) -> None:
    model = Drifting(even_drift_rates(rate), MADE, LISTED)
    queue = f"drifting-{rate}"
    async with serve_drifting_model(temporal, root, model, queue):
        runs = (drift_as_job(temporal, root, queue, model, seed, set=FEW) for seed in SEEDS)
        ends = await asyncio.gather(*runs)
    for end in ends:
        if end.status == "completed":
            assert end.made == MADE
        else:
            assert (end.status, end.waiting in WAITS) == ("waiting", True)
    if rate <= 0.2:
        assert all(end.status == "completed" for end in ends)
        # A job's seed is not part of every request to its model.
        calls = sum(model.calls.values()) / len(ends)
        assert calls <= 1.5 * undrifted.calls


def test_left_alone_the_same_model_stops_early() -> None:
    steady, drifts = Drifting({}), Drifting(even_drift_rates(0.2))
    assert drift_alone(steady, 1).made == ITEMS
    counts = [drift_alone(drifts, seed).made for seed in range(1, 51)]
    assert sum(counts) / len(counts) < ITEMS / 2
