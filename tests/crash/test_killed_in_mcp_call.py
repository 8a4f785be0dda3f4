"""`kill -9` of the worker during an MCP call: it is not repeated, and the model is told."""

import asyncio

from activities.checkpoints import Root
from rehearsal.server import ModelServer
from tests.activities.mcp.serving import odd, processes, until
from tests.crash.begun import Begun, Place
from tests.workflows.short import DONE, Short, job


async def test_a_call_is_not_made_twice(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    outputs: list[str] = []

    def work(view):
        outputs.extend(
            done_call.result for done_call in view.calls if done_call.tool == "odd__slow"
        )
        write = ("write_file", {"path": "output/tea.md", "content": "tea"})
        return [[("odd__slow", {})], [write], [DONE]][view.replies]

    root, ledger = Root.open(place.folder / "root", create=True), place.folder / "ledger"
    with ModelServer(Short({"Work": work})) as model:
        where = (place.temporal.address, root.path, "mcp-call", model.base_url)
        worker = place.workers.worker(*where)
        client = await place.temporal.client()
        handle = await client.start_workflow(
            "Job", job(set={"mcp": {"odd": odd(ledger)}, "limits.tools_offered": 50}),
            id="mcp-call", task_queue="mcp-call", result_type=dict,
        )  # fmt: skip
        await asyncio.to_thread(until, lambda: ledger.exists() and "slow" in ledger.read_text(), 60)
        before = processes(str(ledger))
        worker.kill()
        place.workers.worker(*where)
        await asyncio.to_thread(until, lambda: not before.keys() & processes(str(ledger)).keys())
        result = await asyncio.wait_for(handle.result(), 120)
    # The server and its keeper ended with the worker.
    assert len(before) == 2
    assert result["status"] == "completed"
    assert ledger.read_text().count("slow") == 1
    assert "may have happened" in outputs[0]
