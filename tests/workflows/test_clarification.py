"""An agent asks a person once: the job waits, then uses the answer or the default."""

import asyncio
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from rehearsal import Reply, call
from rehearsal.wire import Answer, Hang
from tests.workflows.deviating import Deviating, enough
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.short import Short, job
from tests.workflows.tea import PAGE, page

QUESTION = "Which tea is meant: green or black?"
ASK = call("request_clarification", question=QUESTION, default="Green tea.")


def asking(*numbers: int, **others: Answer) -> Deviating:
    return Deviating(dict.fromkeys(numbers, ASK) | {int(n[1:]): a for n, a in others.items()})


async def test_an_answer_becomes_the_result_of_the_call(temporal: Client, root: Root) -> None:
    both = Reply("Shall I?", [*ASK.calls, ("list_files", {})])
    model = Deviating({3: both, 5: ASK})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(PAGE)
        status = await jobs.until(handle, waiting_for="clarification")
        pending = status["clarification"]["pending"]
        assert pending["question"] == QUESTION
        assert pending["default"] == "Green tea."
        waiting = status["waiting"]
        assert QUESTION in waiting["message"]
        assert f"starter.py answer {handle.id}" in waiting["remedy"]
        assert pending["id"] in waiting["remedy"]

        await handle.signal("answer", {"id": "another", "text": "Black."})
        await handle.signal("resume", {})
        await handle.signal("answer", {"text": ""})
        status = await jobs.until(handle, notices=lambda notices: len(notices) == 4)
        assert "no question 'another' is open" in " ".join(status["notices"])
        assert status["waiting_for"] == "clarification"

        await handle.signal("answer", {"id": pending["id"], "text": "Black tea."})
        status = await enough(jobs, handle, 6)
    # After the answer the rest of the reply is run.
    assert model.results(4)[-2] == "A person answers: Black tea."
    # Once in a job: the system answers a further question.
    assert "best judgement" in model.results(6)[-1]
    assert status["clarification"] == {"used": 1, "pending": None, "resolved": 1}


async def test_who_is_asked_finds_what_it_is_about(temporal: Client, root: Root) -> None:
    draft = ("write_file", {"path": "output/draft.md", "content": "tea"})
    ask = ("request_clarification", {"question": "Is output/draft.md right?", "default": "Yes."})
    async with serving(temporal, root, Short({"Work": lambda view: [draft, ask]})) as jobs:
        handle = await jobs.start(job())
        await jobs.until(handle, waiting_for="clarification")
        written = jobs.folder(handle) / "output" / "draft.md"
        async with asyncio.timeout(5):
            while not written.exists():
                await query_status(handle)
        assert written.read_text() == "tea"


async def test_without_an_answer_the_default_holds(temporal: Client, root: Root) -> None:
    model = asking(3)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(page(set={"limits.clarification_hours": 0.0003}))
        status = await enough(jobs, handle, 4)
    assert model.results(4)[-1] == "Nobody answered in time. Go on with your default: Green tea."
    assert any("nobody answered in time" in notice for notice in status["notices"])


async def test_a_question_may_be_one_too_many_from_the_start(temporal: Client, root: Root) -> None:
    model = asking(3)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(page(set={"limits.clarifications": 0}))
        await enough(jobs, handle, 4)
    assert "best judgement" in model.results(4)[-1]


async def test_a_question_without_a_default_is_no_question(temporal: Client, root: Root) -> None:
    model = asking(4, n3=call("request_clarification", question="Which?"))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(PAGE)
        await jobs.until(handle, waiting_for="clarification")
        assert "default: Field required" in model.results(4)[-1]
        await handle.signal("answer", {"text": "Any."})
        await enough(jobs, handle, 5)


async def test_a_question_outlives_continue_as_new_and_pause(temporal: Client, root: Root) -> None:
    """The job begins a new run with the question open."""
    model = asking(3)
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(page(set={"limits.history_events": 100}))
        status = await jobs.until(handle, waiting_for="clarification")
        pending = status["clarification"]["pending"]
        run = (await jobs.client.get_workflow_handle(handle.id).describe()).run_id
        # Signals without effect fill the history until the waiting job continues as new.
        while (await jobs.client.get_workflow_handle(handle.id).describe()).run_id == run:
            await jobs.client.get_workflow_handle(handle.id).signal("resume", {})
            await asyncio.sleep(0.02)
        current: Any = jobs.client.get_workflow_handle(handle.id, result_type=dict)
        status = await jobs.until(current, waiting_for="clarification")
        assert status["clarification"]["pending"] == pending

        await current.signal("pause", {})
        await jobs.until(current, waiting_for="paused")
        await current.signal("answer", {"text": "Black tea."})
        await jobs.until(current, clarification=lambda held: held["pending"]["answer"])
        assert (await query_status(current))["waiting_for"] == "paused"
        await current.signal("resume", {})
        await enough(jobs, current, 4)
    assert model.results(4)[-1] == "A person answers: Black tea."


async def test_the_time_for_an_answer_goes_on_over_continue_as_new(
    temporal: Client, root: Root
) -> None:
    # The job is still at work then, however late the last signal arrives.
    model = asking(3, n5=Hang())
    async with serving(temporal, root, model) as jobs:
        settings = {"limits.history_events": 100, "limits.clarification_hours": 0.002}
        handle = await jobs.start(page(set=settings))
        await jobs.until(handle, waiting_for="clarification")
        latest = jobs.client.get_workflow_handle(handle.id)
        run = (await latest.describe()).run_id
        # Each is an event; together they are more than a run may have.
        for _ in range(100):
            await latest.signal("resume", {})
        while (await latest.describe()).run_id == run:  # noqa: ASYNC110 - the server tells
            await asyncio.sleep(0.02)
        await enough(jobs, latest, 4)
    assert "Go on with your default: Green tea." in model.results(4)[-1]


async def test_a_rewind_drops_the_question_visibly(temporal: Client, root: Root) -> None:
    # The job is still at work then, when the answer arrives.
    model = asking(3, n8=call("wait", seconds=3600))
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(PAGE)
        await jobs.until(handle, waiting_for="clarification")
        await handle.signal("rewind", {"issue": "Both teas are meant."})
        status = await jobs.until(handle, rewinds=1)
        assert any(f"was dropped: {QUESTION}" in notice for notice in status["notices"])
        assert status["clarification"]["pending"] is None
        await handle.signal("answer", {"text": "Too late."})
        await jobs.until(handle, notices=lambda told: "no question is open" in told[-1])
        await handle.signal("cancel", {})


async def test_a_job_that_waits_for_an_answer_can_be_cancelled(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, asking(3)) as jobs:
        handle = await jobs.start(PAGE)
        await jobs.until(handle, waiting_for="clarification")
        await handle.signal("cancel", {"reason": "no longer needed"})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
        status = await query_status(handle)
        assert (status["status"], status["waiting_for"]) == ("cancelled", None)
