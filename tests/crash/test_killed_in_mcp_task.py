"""`kill -9` of the worker during a task of an MCP server, and while that waits for an answer."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from temporalio.client import WorkflowHandle

from activities.checkpoints import Root
from rehearsal.server import ModelServer
from tests.activities.mcp.serving import PATIENT, patient_over_http, processes, until
from tests.crash.begun import Begun, Place
from tests.crash.processes import Worker
from tests.soak import soak
from tests.workflows.queries import query_status
from tests.workflows.short import DONE, TEA, Call, Short, job

KILLS = soak(1, 3)


async def test_the_call_of_a_task_is_sent_once(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    await asyncio.gather(own_server(place), server_over_http(place))


class Job:
    """A job that brews for an hour with a server, makes further calls, and ends."""

    def __init__(self, place: Place, name: str, *further: Call) -> None:
        self.place, self.name = place, name
        self.ledger = place.folder / name
        self.outputs: list[str] = []
        self._calls: list[Call] = [("patient__brew", {"seconds": 3600}), *further, TEA, DONE]

    def work(self, view: Any) -> list[Call]:
        self.outputs.extend(done_call.result for done_call in view.calls[-1:])
        return [self._calls[view.replies]]

    def lines(self) -> list[str]:
        return self.ledger.read_text().splitlines() if self.ledger.exists() else []

    async def _polled(self) -> None:
        polls = self.lines().count("poll")
        await asyncio.to_thread(until, lambda: self.lines().count("poll") > polls, 60)

    def start_worker(self) -> Worker:
        return self.place.workers.worker(*self._where)

    @asynccontextmanager
    async def brewed(
        self, server: dict[str, Any]
    ) -> AsyncIterator[tuple[WorkflowHandle[Any, dict[str, Any]], Worker]]:
        """Kill the worker again and again while it polls, then let the task end."""
        root = Root.open(self.place.folder / f"{self.name}-root", create=True)
        with ModelServer(Short({"Work": self.work})) as model:
            self._where = (self.place.temporal.address, root.path, self.name, model.base_url)
            worker = self.start_worker()
            handle: WorkflowHandle[Any, dict[str, Any]] = await (
                await self.place.temporal.client()
            ).start_workflow(
                "Job", job(set={"mcp": {"patient": server}, "limits.tools_offered": 50}),
                id=self.name, task_queue=self.name, result_type=dict,
            )  # fmt: skip
            await self._polled()
            for _ in range(KILLS):
                worker.kill()
                worker = self.start_worker()
                await self._polled()
            [task] = self.ledger.with_name(f"{self.name}.tasks").iterdir()
            task.write_text(json.dumps(json.loads(task.read_text()) | {"ends": 0}))
            yield handle, worker
            assert (await asyncio.wait_for(handle.result(), 120))["status"] == "completed"
        assert self.outputs[0] == "tea is ready"


async def own_server(place: Place) -> None:
    """The server ends with its worker, but stores its tasks."""
    jobs = Job(place, "mcp-task", ("patient__order", {"kind": "tea"}))
    command = [sys.executable, str(PATIENT), str(jobs.ledger)]
    async with jobs.brewed({"command": command}) as (handle, worker):
        for _ in range(240):
            if (await query_status(handle))["waiting_for"] == "clarification":
                break
            await asyncio.sleep(0.5)
        worker.kill()
        before = processes(str(jobs.ledger))
        jobs.start_worker()
        await handle.signal("answer", {"text": "size=large"})
    assert not before.keys() & processes(str(jobs.ledger)).keys()
    assert jobs.outputs[1] == "ordered large tea"
    brewed, ordered = [line for line in jobs.lines() if line != "poll"]
    assert brewed.startswith("brew ")
    assert ordered == "order tea large False"


async def server_over_http(place: Place) -> None:
    """Others may use the server as well."""
    jobs = Job(place, "mcp-http")
    with patient_over_http(jobs.ledger) as server:
        async with jobs.brewed(server):
            pass
    assert [line.split()[0] for line in jobs.lines() if line != "poll"] == ["brew"]
