"""A server and workers as processes of their own, to be killed, and a job that nobody disturbs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer, nursery
from tests.crash.site import Site
from tests.crash.trial import opened


@pytest.fixture(scope="session")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    with nursery(tmp_path_factory.mktemp("logs")) as made:
        yield made


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with TemporalServer(tmp_path_factory.mktemp("temporal") / "server") as made:
        yield made


@pytest.fixture(scope="session")
async def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, workers: Nursery, temporal: TemporalServer
) -> Site:
    folder = tmp_path_factory.mktemp("undisturbed")
    async with opened(Site("undisturbed", folder, workers, temporal, [Ledger("Ada")])) as site:
        await site.finish()
    assert set(site.asked["Ada"].values()) == {1}
    return site
