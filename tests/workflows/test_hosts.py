"""Workers on separate workspaces roots that share a remote for checkpoints."""

import asyncio
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from engine.connection import connect_client
from rehearsal import Answer, Failure, Request
from rehearsal.request_view import parse_request_view
from tests.activities.checkpoints.hosts import remote_ref_prefix
from tests.crash.model import LEDGER as LEDGER_FILE
from tests.crash.model import Ledger
from tests.workflows.queries import query_status
from tests.workflows.serving import serving

LEDGER = Ledger("Ada", phases=1, todos=2)


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    return path


class Told:
    """The model of one host, which counts its requests."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Answer:
        self.asked[str(request["messages"])] += 1
        return LEDGER(request)


class Held:
    """A model that does not answer at a certain todo until it is released."""

    def __init__(self, todo: str) -> None:
        self.todo, self.is_held = todo, True

    def __call__(self, request: Request) -> Answer:
        if request.get("tools") and self.is_held:
            current = parse_request_view(request).current_todo
            if current and self.todo in current.text:
                return Failure(503, "held")
        return LEDGER(request)


def start(remote: Path, **settings: object) -> dict[str, Any]:
    return LEDGER.start(
        **{
            "workspace.remote": f"file://{remote}",
            "todos.bootstrap": ["Plan Ada", "Hand over Ada"],
            "todos.transition": ["Plan Ada"],
            **settings,
        }
    )


async def another(client: Client) -> Client:
    """Return another connection like this one: each takes one worker of a task queue."""
    return await connect_client(client.service_client.config.target_host)


def commits(remote: Path, job: str) -> dict[str, str]:
    """Return the commits in the remote by the refs of a job."""
    listed = subprocess.run(
        ["git", "--git-dir", str(remote), "for-each-ref", "--format=%(refname) %(objectname)",
         remote_ref_prefix(job)],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return dict(line.split() for line in listed.splitlines())


def at(todo: str) -> Callable[[list[dict[str, str]]], bool]:
    return lambda todos: any(
        (each["content"], each["status"]) == (todo, "current") for each in todos
    )


async def until_pushed(remote: Path, job: str, commit: str) -> None:
    for _ in range(200):
        if commit in commits(remote, job).values():
            return
        await asyncio.sleep(0.1)
    raise AssertionError(commits(remote, job))


async def test_a_job_that_goes_to_and_fro_ends_as_one_that_stays(
    temporal: Client, root: Root, tmp_path: Path, remote: Path
) -> None:
    other = Root.open(tmp_path / "other", create=True)
    third = Root.open(tmp_path / "third", create=True)
    async with serving(temporal, third, LEDGER) as jobs:
        stayed = await jobs.result(await jobs.start(start(remote)))
    model_a, model_b = Told(), Told()
    async with AsyncExitStack() as hosts:
        # Without a cache each workflow task, with its local activities, goes to either of them.
        first = await hosts.enter_async_context(
            serving(temporal, root, model_a, queue="hosts", max_cached_workflows=0)
        )
        await hosts.enter_async_context(
            serving(await another(temporal), other, model_b, queue="hosts", max_cached_workflows=0)
        )
        handle = await first.start(start(remote))
        result = await first.result(handle)
        status = await query_status(handle)
    assert (result["status"], result["tree"]) == ("completed", stayed["tree"]), status["notices"]
    assert not [line for line in status["notices"] if "is lost" in line], status["notices"]
    assert model_a.asked, model_b.asked
    assert (model_a.asked + model_b.asked).total() == len(model_a.asked | model_b.asked)
    took_part = {ref.rpartition("/")[2] for ref in commits(remote, handle.id) if "/runs/" in ref}
    assert took_part == {root.id, other.id}


async def test_a_remote_that_is_away_holds_nothing_up_and_catches_up(
    temporal: Client, root: Root, remote: Path
) -> None:
    model = Held("Enter Ada 2")
    url = start(remote)
    away = shutil.move(remote, remote.with_name("away"))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(url)
        status = await jobs.until(handle, todos=at("Enter Ada 2"))
        assert "cannot be reached" in status["notices"][0]
        assert "does not appear to be a git repository" in status["remote"]["behind"]
        shutil.move(away, remote)
        model.is_held = False
        result = await jobs.result(handle)
        assert result["checkpoint"] in commits(remote, handle.id).values()
        assert (await query_status(handle))["remote"]["behind"] == ""


async def test_a_person_takes_a_job_back_on_a_host_that_never_had_it(
    temporal: Client, root: Root, tmp_path: Path, remote: Path
) -> None:
    other = Root.open(tmp_path / "other", create=True)
    async with serving(temporal, root, Held("Enter Ada 2"), queue="back") as jobs:
        handle = await jobs.start(start(remote))
        status = await jobs.until(handle, todos=at("Enter Ada 2"))
        assert jobs.snapshot(handle, status["checkpoint"]).files.entry(LEDGER_FILE)
        await until_pushed(remote, handle.id, status["checkpoint"])
    shutil.rmtree(root.path)
    async with serving(await another(temporal), other, LEDGER, queue="back") as jobs:
        await handle.signal("rewind", {"issue": "Begin again.", "phase": 2})
        status = await jobs.until(handle, phase=lambda phase: phase["purpose"] == "rewind")
        assert not [line for line in status["notices"] if "is lost" in line], status["notices"]
        files = jobs.snapshot(handle, status["checkpoint"]).files
        assert files.entry(LEDGER_FILE) is None
        assert files.entry("plan.md") is not None
        await handle.terminate()


async def test_a_fork_begins_on_a_host_that_never_had_the_first_job(
    temporal: Client, root: Root, tmp_path: Path, remote: Path
) -> None:
    other = Root.open(tmp_path / "other", create=True)
    async with serving(temporal, root, Held("Enter Ada 2")) as jobs:
        first = await jobs.start(start(remote))
        status = await jobs.until(first, todos=at("Enter Ada 2"))
        await until_pushed(remote, first.id, status["checkpoint"])
        await first.terminate()
    settings = {"workspace": {"remote": f"file://{remote}"}}
    async with serving(await another(temporal), other, Held("")) as jobs:
        fork = {"job": first.id, "phase": 2}
        handle = await jobs.start({"fork": fork, "set": settings})
        status = await jobs.until(handle, phase=lambda phase: phase["purpose"] == "fork")
        assert jobs.snapshot(handle, status["checkpoint"]).read_text("plan.md")
        await handle.terminate()


async def test_a_second_job_of_that_id_is_refused_on_another_host(
    temporal: Client, root: Root, tmp_path: Path, remote: Path
) -> None:
    other = Root.open(tmp_path / "other", create=True)
    async with serving(temporal, root, Held("")) as jobs:
        first = await jobs.start(start(remote), job_id="taken")
        status = await jobs.until(first, todos=lambda todos: todos)
        await until_pushed(remote, first.id, status["checkpoint"])
        await first.terminate()
    async with serving(await another(temporal), other, LEDGER) as jobs:
        second = await jobs.start(start(remote), job_id="taken")
        with pytest.raises(WorkflowFailureError) as failed:
            await jobs.result(second)
    assert "is already in the remote" in str(failed.value.cause)
