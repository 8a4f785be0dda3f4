"""`kill -9` of the worker while helpers read: they go on, and no reply is paid for twice."""

import asyncio
from collections import Counter
from typing import Any

from temporalio.client import WorkflowHandle

from activities.checkpoints import Root
from rehearsal import Answer, Reply, Request
from rehearsal.server import ModelServer
from rehearsal.wire import Hang
from tests.activities.mcp.serving import until
from tests.crash.begun import Begun, Place
from tests.workflows.delegating import SET, Delegating, delegate, results, task_of
from tests.workflows.short import job

HELPERS = 4


async def test_they_go_on_where_they_were(begun: Begun) -> None:
    await begun(trial)


class Reading(Delegating):
    """Helpers that read one leaf after the other; one of them gets no answer midway."""

    def __init__(self) -> None:
        super().__init__(*(delegate(f"Read {n}.") for n in range(HELPERS)))
        self.hangs = False
        self.asked: Counter[tuple[str, int]] = Counter()

    def help(self, request: Request) -> Answer:
        tool_results = results(request)
        where = task_of(request).partition(".")[0], len(tool_results)
        self.asked[where] += 1
        if self.hangs and where == ("Read 2", 2):
            return Hang()
        if len(tool_results) < 4:
            return Reply(calls=[("read_file", {"path": f"notes/leaf_{len(tool_results)}.md"})])
        return Reply(content="Four leaves.")


async def trial(place: Place) -> None:
    root, model = Root.open(place.folder / "root", create=True), Reading()
    with ModelServer(model) as served:
        where = (place.temporal.address, root.path, "helpers", served.base_url)
        worker = place.workers.worker(*where)
        client = await place.temporal.client()

        async def start(name: str) -> WorkflowHandle[Any, dict[str, Any]]:
            return await client.start_workflow(
                "Job", job(set=SET), id=name, task_queue="helpers", result_type=dict
            )

        undisturbed = await asyncio.wait_for((await start("undisturbed")).result(), 90)
        once = dict.fromkeys(model.asked, 1)
        assert model.asked == once
        model.asked.clear()
        model.hangs = True
        handle = await start("disturbed")
        others = [(f"Read {n}", 2) for n in range(HELPERS)]
        await asyncio.to_thread(until, lambda: all(model.asked[each] for each in others), 60)
        await asyncio.sleep(0.5)
        worker.kill()
        model.hangs = False
        place.workers.worker(*where)
        result = await asyncio.wait_for(handle.result(), 120)
    assert result["status"] == "completed"
    # The helper whose reply was lost is asked again; those with stored replies are not.
    assert model.asked == {**once, ("Read 2", 2): 2}
    assert result["tree"] == undisturbed["tree"]
    assert result["usage"] == undisturbed["usage"]
