"""A host is lost while helpers read: another host resumes from the remote, helpers start anew."""

import asyncio
import shutil

import pygit2

from activities.checkpoints import Root
from rehearsal import Answer, Request
from rehearsal.server import ModelServer
from rehearsal.wire import Hang
from tests.activities.mcp.serving import until
from tests.crash.begun import Begun, Place
from tests.workflows.delegating import SET, Delegating, delegate, is_helper, results
from tests.workflows.short import job


async def test_they_begin_anew(begun: Begun) -> None:
    await begun(trial)


class Lost(Delegating):
    """A helper that has read, and gets no answer as long as the first host runs."""

    def __init__(self) -> None:
        super().__init__(delegate("One?", "notes/leaf_1.md"))
        self.hangs, self.is_waiting = True, False

    def help(self, request: Request) -> Answer:
        if results(request) and self.hangs:
            self.is_waiting = True
            return Hang()
        answer: Answer = super().help(request)
        return answer


async def trial(place: Place) -> None:
    remote, queue, model = place.folder / "remote.git", "lost-helpers", Lost()
    pygit2.init_repository(remote, bare=True)
    first, second = (Root.open(place.folder / name, create=True) for name in ("first", "second"))
    with ModelServer(model) as served:
        worker = place.workers.worker(place.temporal.address, first.path, queue, served.base_url)
        client = await place.temporal.client()
        handle = await client.start_workflow(
            "Job", job(set={**SET, "workspace.remote": f"file://{remote}"}),
            id=queue, task_queue=queue, result_type=dict,
        )  # fmt: skip
        await asyncio.to_thread(until, lambda: model.is_waiting, 60)
        worker.kill()
        await asyncio.to_thread(worker.until_gone)
        shutil.rmtree(first.path)
        model.hangs = False
        place.workers.worker(place.temporal.address, second.path, queue, served.base_url)
        result = await asyncio.wait_for(handle.result(), 120)
    assert result["status"] == "completed"
    assert model.answers[0].endswith("Read 1: 1\tLeaf notes/leaf_1.md")
    helped = [request for request in model.requests if is_helper(request)]
    assert [len(results(request)) for request in helped] == [0, 1, 0, 1]
