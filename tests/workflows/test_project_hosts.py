"""Projects on separate workspaces roots with a shared remote: any host can continue them."""

import asyncio
import shutil
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from rehearsal import Answer, Failure, Request
from rehearsal.request_view import parse_request_view
from tests.buckets import create_bucket, unconditional_server
from tests.flawed_store import flawed_store
from tests.soak import soak
from tests.workflows.serving import SECONDS, serving
from tests.workflows.short import job
from tests.workflows.team import Team, Writes, project, write
from tests.workflows.test_hosts import another

STAGES = [
    {"id": "draft", "agent": "generalist", "task": "Draft the menu."},
    {"id": "check", "agent": "generalist", "task": "Check the menu."},
]
DOES: dict[str, Writes] = {
    "Draft the menu": lambda text: [write("repo/menu.md", "tea\n")],
    "Check the menu": lambda text: [write("repo/checked.md", "fine\n")],
}


class FirstStageOnly:
    """A model that stops answering once the second stage is at work."""

    def __init__(self) -> None:
        self.team = Team(DOES)
        self.holds = asyncio.Event()

    def __call__(self, request: Request) -> Answer:
        if "Check the menu" in parse_request_view(request).workspace:
            self.holds.set()
            return Failure(503, "held")
        return self.team(request)


def pipeline(remote: str, **details: Any) -> dict[str, Any]:
    return project("pipeline", stages=STAGES, set={"workspace.remote": remote}, **details)


def tree(root: Root, project_id: str, commit: str) -> str:
    return ProjectRepository(project_repository_path(root, project_id)).tree_id(commit)


async def check_id_is_refused_elsewhere(
    temporal: Client, root: Root, address: str, project_id: str
) -> None:
    """Check that another host refuses a second project of an id that is in the remote."""
    async with serving(await another(temporal), root, Team(DOES)) as jobs:
        second = await jobs.start(pipeline(address), kind="Project", job_id=project_id)
        with pytest.raises(WorkflowFailureError) as failed:
            await jobs.result(second)
    assert "is already in the remote" in str(failed.value.cause)


@pytest.mark.parametrize("address", soak(["s3"], ["git", "s3"]), indirect=True)
async def test_a_project_whose_host_is_lost_ends_as_undisturbed_and_keeps_its_id(
    temporal: Client, root: Root, tmp_path: Path, address: str
) -> None:
    other = Root.open(tmp_path / "other", create=True)
    third = Root.open(tmp_path / "third", create=True)
    async with serving(temporal, third, Team(DOES)) as jobs:
        stayed = await jobs.start(pipeline(address), kind="Project")
        undisturbed = await jobs.result(stayed)
    await check_id_is_refused_elsewhere(temporal, other, address, stayed.id)
    queue = f"lost-{tmp_path.name}"
    model = FirstStageOnly()
    async with serving(await another(temporal), root, model, queue=queue) as jobs:
        handle = await jobs.start(pipeline(address), kind="Project")
        await asyncio.wait_for(model.holds.wait(), SECONDS)
    shutil.rmtree(root.path)
    async with serving(await another(temporal), other, Team(DOES), queue=queue) as jobs:
        result = await jobs.result(handle)
        assert result["status"] == "completed", result
    assert tree(other, handle.id, result["commit"]) == tree(third, stayed.id, undisturbed["commit"])
    held = ProjectRepository(project_repository_path(other, handle.id))
    assert held.read_file(result["commit"], "menu.md") == b"tea\n"
    assert held.read_file(str(held.git.references["refs/heads/state"].target), "project.md")


@pytest.mark.parametrize("address", soak(["git"], ["git", "s3"]), indirect=True)
async def test_a_project_that_goes_to_and_fro_ends_as_one_that_stays(
    temporal: Client, root: Root, tmp_path: Path, address: str
) -> None:
    other = Root.open(tmp_path / "other", create=True)
    queue = f"fro-{tmp_path.name}"
    async with AsyncExitStack() as hosts:
        jobs, _ = [
            await hosts.enter_async_context(
                serving(
                    await another(temporal), each, Team(DOES), queue=queue, max_cached_workflows=0
                )
            )
            for each in (root, other)
        ]
        handle = await jobs.start(pipeline(address), kind="Project")
        result = await jobs.result(handle)
    assert result["status"] == "completed", result


@pytest.mark.usefixtures("bucket_keys")
async def test_keys_that_expire_have_a_project_wait_until_others_are_there(
    temporal: Client, root: Root, object_store: str
) -> None:
    with flawed_store(object_store) as store:
        address = create_bucket(store.endpoint)
        async with serving(temporal, root, Team(DOES)) as jobs:
            store.break_requests((403, "ExpiredToken"), "/projects/", times=1000)
            handle = await jobs.start(pipeline(address), kind="Project")
            status = await jobs.until(handle, waiting=bool)
            assert "ExpiredToken" in str(status["waiting"])
            assert "start it again with keys that are valid" in str(status["waiting"])
            store.mend()
            await handle.signal("resume")
            result = await jobs.result(handle)
    assert result["status"] == "completed", result


@pytest.mark.usefixtures("bucket_keys")
@pytest.mark.parametrize("kind", ["Job", "Project"])
async def test_a_bucket_that_ignores_conditions_is_refused_at_the_start(
    temporal: Client, root: Root, tmp_path: Path, kind: str
) -> None:
    with unconditional_server(tmp_path / "served") as endpoint:
        address = f"s3://bucket/x?endpoint={endpoint}"
        start = pipeline(address) if kind == "Project" else job(set={"workspace.remote": address})
        async with serving(temporal, root, Team(DOES)) as jobs:
            with pytest.raises(WorkflowFailureError) as failed:
                await jobs.result(await jobs.start(start, kind=kind))
    assert "ignores conditions on writes" in str(failed.value.cause)
