"""Folders of code and fetched repositories on hosts that share nothing but a remote."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pygit2
import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from cli.start.repository_staging import stage_repository
from config.agent_files import load_agent
from rehearsal import Answer, Failure, Request
from rehearsal.request_view import parse_request_view
from tests.activities.source_repository.origins import WorkTree
from tests.soak import soak
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Short, hand_over, job
from tests.workflows.team import Team
from tests.workflows.test_hosts import another
from tests.workflows.test_project_hosts import DOES, pipeline

SECONDS = 40
MENDED = "def brew():\n    return 'green tea'\n"
PAIRS = [
    *(("git", "folder"), ("s3", "folder"), ("s3", "url")),
    *(("git", "url"), ("git", "depth"), ("s3", "depth")),
]
"""Kinds of remotes and of starts."""


def each_start(first: int) -> pytest.MarkDecorator:
    """Run a test with every kind of start, from the pair of this number on: every second pair, so
    that two tests have all of them; `make soak` runs all.
    """
    pairs = soak(PAIRS[first::2], PAIRS)
    return pytest.mark.parametrize(("address", "repository"), pairs, indirect=True)


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    return WorkTree.create(tmp_path / "tea")


class Stops:
    """A model that stops answering once a word comes up, until another host is there."""

    def __init__(self, model: Callable[[Request], Answer], word: str) -> None:
        self.model, self.word, self.is_reached = model, word, asyncio.Event()

    def __call__(self, request: Request) -> Answer:
        if self.is_at_word(request) or self.is_reached.is_set():
            self.is_reached.set()
            return Failure(503, "held")
        return self.model(request)

    def is_at_word(self, request: Request) -> bool:
        if not request.get("tools"):
            return False
        view = parse_request_view(request)
        todo = view.current_todo.text if view.current_todo else ""
        return self.word in view.workspace or todo.startswith(self.word)


def working() -> Short:
    edit = {"path": "repo/tea.py", "content": MENDED}
    tea = ("write_file", {"path": "output/tea.md", "content": "tea"})
    work = [("write_file", edit), tea, DONE]
    return Short({"Hand": lambda view: [hand_over({"items": list(view.open_items)})],
                  "Work": lambda view: work})  # fmt: skip


@pytest.fixture
def repository(
    request: pytest.FixtureRequest,
    tree: WorkTree,
    address: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> dict[str, Any]:
    """The start's address, or a folder as `starter.py` stages it on a host that is then lost."""
    if request.param == "url":
        return {"url": tree.url}
    if request.param == "depth":
        for number in range(3):
            tree.commit(f"Step {number}", {"cups.txt": f"{number}\n"})
        return {"url": tree.url, "depth": 2}
    root = Root.open(tmp_path / "starting", create=True)
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(root.path))
    config = load_agent("generalist", {"workspace.remote": address})
    staged = stage_repository({"folder": str(tree.path)}, [config])
    shutil.rmtree(root.path)
    return staged


@each_start(0)
async def test_a_job_ends_in_a_branch_on_a_host_that_never_had_its_repository(
    temporal: Client,
    root: Root,
    tree: WorkTree,
    tmp_path: Path,
    address: str,
    repository: dict[str, Any],
) -> None:
    head = tree.head
    other, target = Root.open(tmp_path / "other", create=True), tmp_path / "published.git"
    pygit2.init_repository(str(target), bare=True).free()
    publish = {"remote": f"file://{target}", "branch": "green"}
    start = job(repository=repository, set={"workspace.remote": address})
    if "url" in repository and "depth" not in repository:
        # No server takes a history that it has in part.
        start["publish"] = publish
    queue, model = f"staged-{tmp_path.name}", Stops(working(), "Work")
    async with serving(await another(temporal), root, model, queue=queue) as jobs:
        handle = await jobs.start(start)
        await asyncio.wait_for(model.is_reached.wait(), SECONDS)
    shutil.rmtree(root.path)
    shutil.rmtree(tree.path)
    async with serving(await another(temporal), other, working(), queue=queue) as jobs:
        result = await jobs.result(handle, SECONDS)
        snapshot = jobs.snapshot(handle, result["checkpoint"])
    assert result["status"] == "completed", result
    assert result["branch"]["base"] == head
    product = ProjectRepository(project_repository_path(other, handle.id))
    tip = product.get_commit(result["branch"]["commit"])
    assert [str(parent) for parent in tip.parent_ids] == [head]
    assert product.read_file(str(tip.id), "tea.py") == MENDED.encode()
    assert product.git.is_shallow == ("depth" in repository)
    if "publish" not in start:
        assert snapshot.files.read("output/branch.bundle")
        assert b"green tea" in snapshot.files.read("output/changes.patch")
    else:
        published = pygit2.Repository(str(target)).references["refs/heads/green"]
        assert str(published.target) == str(tip.id)


@each_start(1)
async def test_a_fork_ends_in_a_branch_on_a_host_that_never_had_its_repository(
    temporal: Client,
    root: Root,
    tree: WorkTree,
    tmp_path: Path,
    address: str,
    repository: dict[str, Any],
) -> None:
    head, other = tree.head, Root.open(tmp_path / "other", create=True)
    settings = {"workspace.remote": address, "todos.fork": ["Rethink the plan", "Hand over"]}
    queue, model = f"staged-fork-{tmp_path.name}", Stops(working(), "Rethink")
    async with serving(await another(temporal), root, model, queue=queue) as jobs:
        first = await jobs.start(job(repository=repository, set=settings))
        await jobs.result(first, SECONDS)
        start = {"fork": {"job": first.id, "phase": 2}, "instructions": "Only green tea."}
        fork = await jobs.start({**start, "set": {"workspace.remote": address}})
        await asyncio.wait_for(model.is_reached.wait(), SECONDS)
    shutil.rmtree(root.path)
    shutil.rmtree(tree.path)
    async with serving(await another(temporal), other, working(), queue=queue) as jobs:
        result = await jobs.result(fork, SECONDS)
    assert result["status"] == "completed", result
    assert result["branch"]["base"] == head
    product = ProjectRepository(project_repository_path(other, fork.id))
    assert product.read_file(result["branch"]["commit"], "tea.py") == MENDED.encode()


@each_start(1)
async def test_a_project_ends_on_a_host_that_never_had_its_repository(
    temporal: Client,
    root: Root,
    tree: WorkTree,
    tmp_path: Path,
    address: str,
    repository: dict[str, Any],
) -> None:
    head = tree.head
    start = pipeline(address, repository=repository)
    other = Root.open(tmp_path / "other", create=True)
    queue, model = f"staged-project-{tmp_path.name}", Stops(Team(DOES), "Check the menu")
    async with serving(await another(temporal), root, model, queue=queue) as jobs:
        handle = await jobs.start(start, kind="Project")
        await asyncio.wait_for(model.is_reached.wait(), SECONDS)
    shutil.rmtree(root.path)
    shutil.rmtree(tree.path)
    async with serving(await another(temporal), other, Team(DOES), queue=queue) as jobs:
        result = await jobs.result(handle, SECONDS)
    assert result["status"] == "completed", result
    product = ProjectRepository(project_repository_path(other, handle.id))
    assert product.origin is not None
    assert product.origin.commit == head
    for path, text in {"menu.md": b"tea\n", "checked.md": b"fine\n"}.items():
        assert product.read_file(result["commit"], path) == text
    assert product.read_file(result["commit"], "tea.py")
    assert product.git.descendant_of(result["commit"], head)
