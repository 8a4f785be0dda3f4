"""Signals sent as updates, as the command line does: refused at once, or answered with the act."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowHandle, WorkflowUpdateFailedError, WorkflowUpdateStage
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from protocol.notices import PersonAct
from protocol.payloads import UPDATE
from tests.workflows.serving import serving
from tests.workflows.short import job
from tests.workflows.test_people import Slow

Handle = WorkflowHandle[Any, Any]
REFUSED: list[tuple[str, Any, str]] = [
    ("rewind", {"issue": "x", "phase": 9}, "there is no phase 9; the phases are 1 to 2"),
    ("answer", {"text": "Green."}, "no question is open"),
    ("approve", {}, "no request for approval is open"),
    ("bypass", {"guard": "x"}, "guard x has refused nothing; those that have are: none"),
    ("tell", {"txt": "x"}, "text: field required"),
    ("pause", "now", "expected a JSON object, found 'now'"),
    ("rewnid", {}, "it is not known; the signals are rewind,"),
]


async def apply(handle: Handle, signal: str, **payload: Any) -> PersonAct:
    return PersonAct.model_validate(await handle.execute_update(UPDATE, args=[signal, payload]))


async def events(handle: Handle) -> int:
    return (await handle.describe()).history_length


async def test_what_cannot_apply_is_refused_at_once_and_leaves_no_trace(
    temporal: Client, root: Root
) -> None:
    model = Slow()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        async with asyncio.timeout(20):
            await model.thinking.wait()
        before = await events(handle)
        async with asyncio.timeout(2.5):
            for signal, payload, why in REFUSED:
                with pytest.raises(WorkflowUpdateFailedError) as failure:
                    await handle.execute_update(UPDATE, args=[signal, payload])
                assert isinstance(failure.value.cause, ApplicationError)
                assert why in failure.value.cause.message
        assert await events(handle) == before
        status = (await jobs.result(handle), await handle.query("status"))[1]
    assert (status["refusals"], status["people"]) == (0, [])


async def test_the_answer_is_what_came_of_it(temporal: Client, root: Root) -> None:
    model = Slow()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        async with asyncio.timeout(20):
            await model.thinking.wait()
        # During the model call it is accepted at once, and takes effect.
        async with asyncio.timeout(1.5):
            pausing = await handle.start_update(
                UPDATE, args=["pause", {"by": "ben"}], wait_for_stage=WorkflowUpdateStage.ACCEPTED
            )
        paused = PersonAct.model_validate(await pausing.result())
        assert paused.without_time == "ben paused the job"
        assert (await handle.query("status"))["waiting_for"] == "paused"
        again = await asyncio.gather(apply(handle, "pause"), return_exceptions=True)
        assert isinstance(again[0], WorkflowUpdateFailedError)
        (jobs.folder(handle) / "notes/water.md").write_text("Soft.\n")
        resumed = await apply(handle, "resume", by="dee")
        assert resumed.without_time == "dee let the job go on: files edited: notes/water.md (new)"
        rewound = await apply(handle, "rewind", issue="Once more.", phase=2)
        assert rewound.did == "went back to the start of phase 2"
        refused = await apply(handle, "resume")
        assert refused.refused == "the job is not waiting"
        cancelled = await apply(handle, "cancel", reason="enough")
        assert cancelled.detail == "enough"
        people = (await handle.query("status"))["people"]
    assert [act["signal"] for act in people] == ["pause", "resume", "rewind", "resume", "cancel"]


async def test_a_signal_for_the_next_run_is_taken_along(temporal: Client, root: Root) -> None:
    model = Slow()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={"limits.history_events": 100}))
        async with asyncio.timeout(20):
            await model.thinking.wait()
        acts = await asyncio.gather(
            *(handle.execute_update(UPDATE, args=["tell", {"text": f"{n}"}]) for n in range(5))
        )
        result = await jobs.result(handle)
        status = await handle.query("status")
    assert result["status"] == "completed"
    assert sorted(act["detail"] for act in status["people"]) == [f"{n}" for n in range(5)]
    assert all(act is None or act["did"] == "told the agent" for act in acts)
