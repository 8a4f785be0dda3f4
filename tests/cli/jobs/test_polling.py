"""What the server knows of workers, and how little `watch` asks of one."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from temporalio.client import Client

from activities.checkpoints import Root
from cli.commands.look_commands import list_jobs
from cli.jobs.job_view import JobView, view_job
from cli.jobs.polling import task_queue_notice
from engine.deployment import worker_build_id
from engine.development import DevelopmentServer
from engine.service import build_worker
from protocol.status import JobStatus
from rehearsal import Hang
from rehearsal.wire import Answer, Request
from tests.cli.stand_in import StandIn
from tests.workflows.serving import serving
from tests.workflows.short import Short, job

T = TypeVar("T")


async def until(read: Callable[[], Awaitable[T]], condition: Callable[[T], bool]) -> T:
    """Return what is read once it fulfils the condition: the server is late on a busy machine."""
    async with asyncio.timeout(30):
        while not condition(value := await read()):  # noqa: ASYNC110 - it reads
            await asyncio.sleep(0.1)
    return value


async def test_jobs_on_a_queue_that_nobody_polls_are_named(running: DevelopmentServer) -> None:
    notice = await task_queue_notice(running.client, "nobody", ["tea"])
    assert notice == (
        "no worker has polled the task queue nobody in the last five minutes; 1 job cannot go on: "
        "tea; start one with `python worker.py`"
    )


async def test_a_job_that_no_worker_has_taken_has_not_begun(running: DevelopmentServer) -> None:
    handle = await running.client.start_workflow("Job", {}, id="untaken", task_queue="nobody")
    job_view = await view_job(running.client, "untaken", seconds=0.3)
    assert job_view.status.status == "not begun"
    assert job_view.silence == "it has not begun: no worker has taken it"
    rows, _ = await list_jobs(running.client, 10, is_open=True)
    assert [row["status"] for row in rows if row["job_id"] == "untaken"] == ["not begun"]
    await handle.terminate()


async def test_workers_of_two_roots_on_one_queue_are_named(
    running: DevelopmentServer, tmp_path: Path
) -> None:
    roots = [Root.open(tmp_path / name, create=True) for name in ("one", "two")]
    async with AsyncExitStack() as stack:
        for root in roots:
            client = await Client.connect(running.address)
            worker = build_worker(
                client, root=root, task_queue="two", workflows=[StandIn], activities=[]
            )
            await stack.enter_async_context(worker)
        notice = await until(
            lambda: task_queue_notice(running.client, "two"), lambda text: "2 workspaces" in text
        )
    assert all(root.id in notice for root in roots)
    assert "LONGHAUL_WORKSPACES" in notice


def test_a_job_whose_tasks_fail_names_the_version_that_it_needs() -> None:
    status = JobStatus(live=False)
    job_view = JobView(
        "tea", status, False, datetime.now(UTC), "r", attempts=3, version="0.1.0-abc"
    )
    assert "it was last served by version 0.1.0-abc" in job_view.silence
    job_view.version = worker_build_id()
    assert "version" not in job_view.silence


class Thinking:
    """Does a short job, but never answers its second call."""

    def __init__(self) -> None:
        self.short, self.calls, self.thinks = Short(), 0, asyncio.Event()

    def __call__(self, request: Request) -> Answer:
        self.calls += 1
        if self.calls < 2:
            return self.short(request)
        self.thinks.set()
        return Hang()


async def test_a_job_in_which_nothing_happens_is_not_asked_again(
    running: DevelopmentServer, tmp_path: Path
) -> None:
    client: Client = running.client
    root, model = Root.open(tmp_path / "root", create=True), Thinking()
    async with serving(client, root, model) as jobs:
        handle = await jobs.start(job())
        await asyncio.wait_for(model.thinks.wait(), 30)
        await asyncio.sleep(0.3)
        known = await view_job(client, handle.id)
        assert known.live
        assert await task_queue_notice(client, jobs.queue) == ""
        known.status.title = "as known"
        assert (await view_job(client, handle.id, known=known)).status.title == "as known"
        [under_way] = (await view_job(client, handle.id)).status.under_way
        assert under_way.activity == "model_call"
        await handle.signal("limit", {"cost": 20})
        seen = await view_job(client, handle.id, known=known)
        assert seen.status.title == "Make tea."
        await handle.terminate()
