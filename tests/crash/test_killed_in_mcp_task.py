"""`kill -9` of the worker during a task of an MCP server, and while that waits for an answer."""

from __future__ import annotations

import asyncio
import json
import sys

from activities.checkpoints import Root
from rehearsal.server import ModelServer
from tests.activities.mcp.serving import PATIENT, processes, until
from tests.crash.begun import Begun, Place
from tests.workflows.queries import query_status
from tests.workflows.short import DONE, Call, Short, job

KILLS = 3


async def test_the_call_of_a_task_is_sent_once(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    outputs: list[str] = []
    calls: list[Call] = [
        ("patient__brew", {"seconds": 3600}),
        ("patient__order", {"kind": "tea"}),
        ("write_file", {"path": "output/tea.md", "content": "tea"}),
        DONE,
    ]

    def work(view):
        outputs.extend(done_call.result for done_call in view.calls[-1:])
        return [calls[view.replies]]

    root, ledger = Root.open(place.folder / "root", create=True), place.folder / "ledger"
    servers = {"patient": {"command": [sys.executable, str(PATIENT), str(ledger)]}}

    def lines() -> list[str]:
        return ledger.read_text().splitlines() if ledger.exists() else []

    with ModelServer(Short({"Work": work})) as model:
        where = (place.temporal.address, root.path, "mcp-task", model.base_url)
        worker = place.workers.worker(*where)
        client = await place.temporal.client()
        handle = await client.start_workflow(
            "Job", job(set={"mcp": servers, "limits.tools_offered": 50}),
            id="mcp-task", task_queue="mcp-task", result_type=dict,
        )  # fmt: skip
        await asyncio.to_thread(until, lambda: "poll" in lines(), 60)
        for _ in range(KILLS):
            # Its server ends with it, but stores its tasks.
            worker.kill()
            polls = lines().count("poll")
            worker = place.workers.worker(*where)
            await asyncio.to_thread(until, lambda polls=polls: lines().count("poll") > polls, 60)
        [task] = (place.folder / "ledger.tasks").iterdir()
        task.write_text(json.dumps(json.loads(task.read_text()) | {"ends": 0}))
        for _ in range(240):
            if (await query_status(handle))["waiting_for"] == "clarification":
                break
            await asyncio.sleep(0.5)
        worker.kill()
        before = processes(str(ledger))
        place.workers.worker(*where)
        await handle.signal("answer", {"text": "size=large"})
        result = await asyncio.wait_for(handle.result(), 120)
    assert result["status"] == "completed"
    assert not before.keys() & processes(str(ledger)).keys()
    assert outputs[0] == "tea is ready"
    assert outputs[1] == "ordered large tea"
    done = [line for line in lines() if line != "poll"]
    assert len(done) == 2
    assert done[0].startswith("brew ")
    assert done[1] == "order tea large False"
