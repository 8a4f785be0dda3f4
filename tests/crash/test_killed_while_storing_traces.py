"""`kill -9` of the worker before and after traces are written: none lost, none doubled."""

import asyncio
import sqlite3
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Row

from activities.checkpoints import Root
from activities.stores import stored_traces as rows
from activities.stores.relational_store import RelationalStore
from rehearsal.request_view import RequestView
from rehearsal.server import ModelServer
from tests.activities.mcp.serving import until
from tests.crash.begun import Begun, Place
from tests.workflows.short import DONE, Call, Short, job

REFUSED = 4


async def test_each_trace_is_stored_once(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    root = Root.open(place.folder / "root", create=True)
    path = root.path / ".longhaul" / "store.sqlite3"
    store = RelationalStore(root, f"sqlite:///{path}")

    def stored() -> Sequence[Row[Any]]:
        return store.run(lambda connection: rows.job_traces(connection, "traces"))

    assert list(stored()) == []  # the tables exist
    blocker = sqlite3.connect(path, isolation_level=None, check_same_thread=False)

    def work(view: RequestView) -> Sequence[Call]:
        if view.calls:
            if not blocker.in_transaction:
                blocker.execute("BEGIN IMMEDIATE")
            return [("write_file", {"path": "output/tea.md", "content": "tea"}), DONE]
        return [(f"crystal_ball_{n}", {}) for n in range(REFUSED)]

    with ModelServer(Short({"Work": work})) as model:
        where = (place.temporal.address, root.path, "traces", model.base_url)
        worker = place.workers.worker(*where)
        client = await place.temporal.client()
        handle = await client.start_workflow(
            "Job", job(), id="traces", task_queue="traces", result_type=dict
        )

        async def storing() -> None:
            while True:
                described = await handle.describe()
                pending = described.raw_description.pending_activities
                if any(each.activity_type.name == "store_traces" for each in pending):
                    return
                await asyncio.sleep(0.05)

        await asyncio.wait_for(storing(), 60)
        worker.kill()  # it waits for the lock
        worker = place.workers.worker(*where)
        blocker.execute("ROLLBACK")
        blocker.close()
        await asyncio.to_thread(until, stored, 60)
        worker.kill()  # it has written, but may not have reported it yet
        place.workers.worker(*where)
        result = await asyncio.wait_for(handle.result(), 120)
    assert result["status"] == "completed"
    assert [row.tool for row in stored()] == [f"crystal_ball_{n}" for n in range(REFUSED)]
    assert len({row.key for row in stored()}) == REFUSED
