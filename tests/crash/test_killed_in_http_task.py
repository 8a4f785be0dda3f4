"""`kill -9` of the worker while it polls a task of an MCP server over HTTP."""

from __future__ import annotations

import asyncio
import json

from activities.checkpoints import Root
from rehearsal.server import ModelServer
from tests.activities.mcp.serving import patient_over_http, until
from tests.crash.begun import Begun, Place
from tests.crash.test_killed_in_mcp_task import KILLS
from tests.workflows.short import DONE, Call, Short, job


async def test_over_http_the_call_of_a_task_is_sent_once(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    """Kill the worker while it polls a server that others may use as well."""
    outputs: list[str] = []
    calls: list[Call] = [
        ("patient__brew", {"seconds": 3600}),
        ("write_file", {"path": "output/tea.md", "content": "tea"}),
        DONE,
    ]

    def work(view):
        outputs.extend(done_call.result for done_call in view.calls[-1:])
        return [calls[view.replies]]

    root, ledger = Root.open(place.folder / "root", create=True), place.folder / "ledger"

    def polls() -> int:
        return ledger.read_text().splitlines().count("poll") if ledger.exists() else 0

    with ModelServer(Short({"Work": work})) as model, patient_over_http(ledger) as server:
        where = (place.temporal.address, root.path, "mcp-http", model.base_url)
        worker = place.workers.worker(*where)
        client = await place.temporal.client()
        handle = await client.start_workflow(
            "Job", job(set={"mcp": {"patient": server}, "limits.tools_offered": 50}),
            id="mcp-http", task_queue="mcp-http", result_type=dict,
        )  # fmt: skip
        await asyncio.to_thread(until, lambda: polls() > 0, 60)
        for _ in range(KILLS):
            worker.kill()
            before = polls()
            worker = place.workers.worker(*where)
            await asyncio.to_thread(until, lambda before=before: polls() > before, 60)
        [task] = (place.folder / "ledger.tasks").iterdir()
        task.write_text(json.dumps(json.loads(task.read_text()) | {"ends": 0}))
        result = await asyncio.wait_for(handle.result(), 120)
    assert result["status"] == "completed"
    assert outputs[0] == "tea is ready"
    assert [line.split()[0] for line in ledger.read_text().splitlines() if line != "poll"] == [
        "brew"
    ]
