"""A server and workers as processes of their own, to be killed; and a campaign against them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator

import pytest

from tests.crash import campaign as campaigns
from tests.crash.campaign import Campaign
from tests.crash.processes import Nursery, TemporalServer, nursery

ROUNDS = int(os.environ.get("LONGHAUL_CRASH_ROUNDS", "1"))
"""Campaigns, one after another."""
SEED = int(os.environ.get("LONGHAUL_CRASH_SEED", "0")) or random.randrange(1, 1_000_000)
"""Of the first campaign; a new one each time, so that other moments are tried."""


def pytest_report_header() -> str:
    return f"crash tests: LONGHAUL_CRASH_SEED={SEED}"


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with nursery(tmp_path_factory.mktemp("logs")) as made:
        yield made


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with TemporalServer(tmp_path_factory.mktemp("temporal") / "server") as made:
        yield made


@pytest.fixture(scope="session")
async def campaign(
    tmp_path_factory: pytest.TempPathFactory, workers: Nursery, temporal: TemporalServer
) -> list[Campaign]:
    folder = tmp_path_factory.mktemp("campaign")
    return [await campaigns.run(folder, workers, temporal, SEED + n) for n in range(ROUNDS)]
