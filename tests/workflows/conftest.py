"""Jobs on a real Temporal server."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from engine.development import DevelopmentServer
from rehearsal import rehearse
from tests.buckets import empty_remote
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


@pytest.fixture(params=["git", "s3"])
def remote(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """The address of an empty remote, a git repository or a bucket."""
    with empty_remote(request, tmp_path, monkeypatch) as remote:
        yield remote
