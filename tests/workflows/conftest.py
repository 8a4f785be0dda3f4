"""Jobs on a real Temporal server."""

from collections.abc import AsyncIterator

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from engine.development import DevelopmentServer
from rehearsal import rehearse
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import Short, job


@pytest.fixture(scope="session")
def temporal(running: DevelopmentServer) -> Client:
    return running.client


@pytest.fixture(scope="session")
async def undisturbed(temporal: Client, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the final tree of a short, undisturbed job."""
    root = Root.open(tmp_path_factory.mktemp("undisturbed") / "root", create=True)
    async with serving(temporal, root, Short()) as jobs:
        return str((await jobs.result(await jobs.start(job())))["tree"])


@pytest.fixture
async def jobs(temporal: Client, root: Root) -> AsyncIterator[Jobs]:
    """Jobs served by the rehearsal model."""
    async with serving(temporal, root, rehearse) as served:
        yield served
