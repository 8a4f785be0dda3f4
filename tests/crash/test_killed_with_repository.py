"""`kill -9` of the worker during a git fetch or push: fetched again, and pushed once."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Root
from activities.projects.project_repository import project_repository_path
from rehearsal.server import ModelServer
from tests.activities.source_repository.origins import WorkTree, bare_clone, git
from tests.activities.wires import PASSWORD, USER, Trouble, web
from tests.crash.begun import Place
from tests.crash.processes import Nursery, TemporalServer
from tests.workflows import test_project_repository
from tests.workflows.short import job
from tests.workflows.team import project
from tests.workflows.test_publish import model

TOKEN = {"TEA_ACCESS": PASSWORD}


def serve_clone(tree: WorkTree, place: Place) -> Path:
    """Serve a bare clone that accepts pushes over HTTP and logs changes of its refs."""
    (place.folder / "served").mkdir()
    remote = bare_clone(tree, place.folder / "served" / "tea.git")
    for name, value in (("http.receivepack", "true"), ("core.logAllRefUpdates", "true")):
        git(remote, "config", name, value)
    return remote


@pytest.mark.parametrize("trouble", ["slow fetch", "slow"])
async def test_what_is_killed_on_the_wire_is_fetched_anew_or_pushed_once(
    trouble: Trouble, workers: Nursery, temporal: TemporalServer, tmp_path: Path
) -> None:
    place = Place(tmp_path, workers, temporal)
    tree = WorkTree.create(place.folder / "tea", _gitignore="*.log\n", tea_py="x = 1\n")
    remote = serve_clone(tree, place)
    root = Root.open(place.folder / "root", create=True)
    queue = f"repository-{trouble.replace(' ', '-')}"
    with ModelServer(model()) as served, web(remote.parent) as wire:
        wire.trouble = trouble
        address, model_url = place.temporal.address, served.base_url
        client = await place.temporal.client()
        worker = place.workers.worker(address, root.path, queue, model_url, **TOKEN)
        url = f"{wire.url.replace('://', f'://{USER}@')}/tea.git"
        start = job(
            repository={"url": url, "token_variable": "TEA_ACCESS"},
            publish={"branch": "stronger"},
        )
        handle = await client.start_workflow(
            "Job", start, id=queue, task_queue=queue, result_type=dict
        )
        assert await asyncio.to_thread(wire.waits.wait, 90)
        worker.kill()
        await asyncio.to_thread(worker.until_gone)
        wire.trouble = ""
        wire.goes_on.set()
        place.workers.worker(address, root.path, queue, model_url, **TOKEN)
        result: dict[str, Any] = await asyncio.wait_for(handle.result(), 120)
        history = await handle.fetch_history()
    assert result["status"] == "completed", result
    assert result["branch"]["published"].endswith("/tea.git")
    # Whichever worker pushed, the branch was moved once, to the commit of the result.
    log = (remote / "logs" / "refs" / "heads" / "stronger").read_text().splitlines()
    assert [line.split()[1] for line in log] == [result["branch"]["commit"]]
    own = project_repository_path(root, queue)
    assert not list(own.glob("incoming-*"))
    assert git(own, "rev-parse", "refs/longhaul/start").strip() == tree.head
    # The token is in neither the history nor any file.
    assert PASSWORD not in str(history.to_json())
    written = [path for path in _files(root.path) if PASSWORD.encode() in path.read_bytes()]
    assert written == []


async def test_a_project_whose_worker_is_killed_while_it_pushes_pushes_once(
    workers: Nursery, temporal: TemporalServer, tmp_path: Path
) -> None:
    place = Place(tmp_path, workers, temporal)
    tree = WorkTree.create(place.folder / "tea", cups__one_txt="one\n")
    remote = serve_clone(tree, place)
    root = Root.open(place.folder / "root", create=True)
    queue = "repository-project"
    with ModelServer(test_project_repository.team()) as served, web(remote.parent) as wire:
        wire.trouble = "slow"
        address, model_url = place.temporal.address, served.base_url
        client = await place.temporal.client()
        worker = place.workers.worker(address, root.path, queue, model_url, **TOKEN)
        url = f"{wire.url.replace('://', f'://{USER}@')}/tea.git"
        start = project(
            "pipeline",
            stages=test_project_repository.STAGES,
            repository={"url": url, "token_variable": "TEA_ACCESS"},
            publish={"branch": "menu"},
        )
        handle = await client.start_workflow(
            "Project", start, id=queue, task_queue=queue, result_type=dict
        )
        assert await asyncio.to_thread(wire.waits.wait, 90)
        worker.kill()
        await asyncio.to_thread(worker.until_gone)
        wire.trouble = ""
        wire.goes_on.set()
        place.workers.worker(address, root.path, queue, model_url, **TOKEN)
        result: dict[str, Any] = await asyncio.wait_for(handle.result(), 120)
    assert result["status"] == "completed", result
    log = (remote / "logs" / "refs" / "heads" / "menu").read_text().splitlines()
    assert [line.split()[1] for line in log] == [result["commit"]]
    assert git(remote, "rev-parse", "menu~2").strip() == tree.head


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
