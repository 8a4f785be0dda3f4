"""A server and workers in separate processes that can be killed, and an undisturbed job."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.crash.begun import Begun, Place
from tests.crash.model import Ledger
from tests.crash.processes import Nursery, TemporalServer
from tests.crash.site import Site
from tests.crash.trial import opened


@pytest.fixture(scope="session")
def temporal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with TemporalServer(tmp_path_factory.mktemp("temporal") / "server", returns=False) as server:
        yield server


@pytest.fixture(scope="session")
async def begun(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    workers: Nursery,
    temporal: TemporalServer,
) -> AsyncIterator[Begun]:
    """Begin the function `trial` of each module whose tests are selected."""
    tests = [item for item in request.session.items if isinstance(item, pytest.Function)]
    modules = [test.module for test in tests if "begun" in test.fixturenames]
    trials = Begun(
        [leave_alone, *(module.trial for module in modules if hasattr(module, "trial"))],
        lambda: Place(tmp_path_factory.mktemp("trial"), workers, temporal),
    )
    yield trials
    await trials.given_up()


async def leave_alone(place: Place) -> Site:
    site = Site("undisturbed", place.folder, place.workers, place.temporal, [Ledger("Ada")])
    async with opened(site):
        await site.finish()
    assert set(site.asked["Ada"].values()) == {1}
    return site


@pytest.fixture(scope="session")
async def undisturbed(begun: Begun) -> Site:
    return await begun(leave_alone)
