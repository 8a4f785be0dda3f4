"""What the server knows of workers, and how little `watch` asks of one."""

from __future__ import annotations

import asyncio
from pathlib import Path

from temporalio.client import Client

from activities.checkpoints import Root
from cli.jobs.job_view import view_job
from cli.jobs.polling import unpolled_queue_notice
from engine.development import DevelopmentServer
from rehearsal import Hang
from rehearsal.wire import Answer, Request
from tests.workflows.serving import serving
from tests.workflows.short import Short, job


async def test_jobs_on_a_queue_that_nobody_polls_are_named(running: DevelopmentServer) -> None:
    notice = await unpolled_queue_notice(running.client, "nobody", ["tea"])
    assert notice == (
        "no worker has polled the task queue nobody in the last five minutes; 1 job cannot go on: "
        "tea; start one with `python worker.py`"
    )


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
        assert await unpolled_queue_notice(client, jobs.queue) == ""
        known.status.title = "as known"
        assert (await view_job(client, handle.id, known=known)).status.title == "as known"
        [under_way] = (await view_job(client, handle.id)).status.under_way
        assert under_way.activity == "model_call"
        await handle.signal("limit", {"cost": 20})
        seen = await view_job(client, handle.id, known=known)
        assert seen.status.title == "Make tea."
        await handle.terminate()
