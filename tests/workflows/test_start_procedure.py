"""A start that is disturbed before the job exists."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from temporalio import activity
from temporalio.client import (
    Client,
    WorkflowContinuedAsNewError,
    WorkflowFailureError,
    WorkflowHandle,
)
from temporalio.common import RetryPolicy
from temporalio.exceptions import CancelledError

from activities.activity_catalogue import all_activities
from activities.checkpoints import Root
from activities.runtime.failures import typed_failure
from activities.runtime.heartbeats import heartbeats
from activities.steps.cancel_start import cancel_start
from engine.service import build_worker
from protocol.prepare_requests import PrepareReply, PrepareRequest
from protocol.project_requests import (
    CloseProjectRequest,
    ProjectPrepareReply,
    ProjectPrepareRequest,
)
from protocol.requests import CheckpointReply
from tests.workflows.queries import query_status
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import TEA, Short, job
from tests.workflows.team import project

ASK = ("request_clarification", {"question": "Black?", "default": "Yes."})
FULL = typed_failure("Storage", "The workspaces root cannot be used: no space left on device.")


async def test_one_that_waits_for_space_goes_on_and_can_be_cancelled_while_it_fails(
    temporal: Client, root: Root
) -> None:
    freed, begun = asyncio.Event(), asyncio.Event()

    @activity.defn(name="prepare")
    async def prepare(request: PrepareRequest) -> PrepareReply:
        if not freed.is_set():
            raise FULL
        begun.set()
        async with heartbeats():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        raise typed_failure("Dependency", "The MCP server tea cannot be reached.")

    async with build_worker(temporal, task_queue="disturbed", activities=[prepare, cancel_start]):
        start = {"agent": "generalist", "instructions": "Make tea."}
        handle = await temporal.start_workflow("Job", start, id="disturbed", task_queue="disturbed")
        # Only a person can free space: the start waits for that and goes on.
        standing = await Jobs(temporal, root, "disturbed").until(handle, waiting_for="storage")
        assert "Free space" in standing["waiting"]["remedy"]
        freed.set()
        await handle.signal("resume", {})
        await asyncio.wait_for(begun.wait(), 30)
        await handle.cancel()
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(handle.result(), 30)
        assert isinstance(caught.value.cause, CancelledError)
        # The signal does the same, whatever is being read.
        begun.clear()
        again = await temporal.start_workflow("Job", start, id="again", task_queue="disturbed")
        await asyncio.wait_for(begun.wait(), 30)
        await again.signal("cancel", {"reason": "Too long."})
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(again.result(), 30)
        assert isinstance(caught.value.cause, CancelledError)
        notices = (await query_status(again))["notices"]
    assert notices == ["cancelled before it began: Too long."]


async def test_what_was_prepared_all_the_same_is_closed_however_it_was_cancelled(
    temporal: Client, root: Root
) -> None:
    done, freed = asyncio.Event(), asyncio.Event()
    activities = {entry.__name__: entry for entry in all_activities(root)}

    @activity.defn(name="prepare")
    async def prepare(request: PrepareRequest) -> PrepareReply:
        reply: PrepareReply = await activities["prepare"](request)
        done.set()
        # Each cancellation reaches the worker at its own time.
        while not freed.is_set():
            with suppress(asyncio.CancelledError):
                await freed.wait()
        return reply

    served = [*({**activities, "prepare": prepare}).values()]
    async with build_worker(temporal, root=root, task_queue="late", activities=served):
        handle = await Jobs(temporal, root, "late").start(job())
        await asyncio.wait_for(done.wait(), 30)
        await handle.signal("cancel", {})
        await handle.cancel()
        freed.set()
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(handle.result(), 30)
        assert (await query_status(handle))["result"]["status"] == "cancelled"


async def test_a_project_that_waits_for_space_shows_it_and_can_be_cancelled(
    temporal: Client, root: Root
) -> None:
    begun = asyncio.Event()
    closed: list[str] = []

    @activity.defn(name="prepare_project")
    async def prepare(request: ProjectPrepareRequest) -> ProjectPrepareReply:
        if activity.info().workflow_id == "full":
            raise FULL
        begun.set()
        async with heartbeats():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
        return ProjectPrepareReply(
            root="r", repository="tea.git", title="Tea", commit="c", state="s"
        )

    @activity.defn(name="close_project")
    async def close(request: CloseProjectRequest) -> CheckpointReply:
        closed.append(request.result.status)
        return CheckpointReply(commit="c2")

    async with build_worker(temporal, task_queue="full", activities=[prepare, close, cancel_start]):
        handle = await temporal.start_workflow(
            "Project", project("features"), id="full", task_queue="full"
        )
        jobs = Jobs(temporal, root, "full")
        standing = await jobs.until(handle, waiting_for="storage")
        assert "Free space" in standing["waiting"]["remedy"]
        memo = await (await handle.describe()).memo()
        assert (memo["status"], memo["agent"]) == ("waiting: storage", "project (features)")
        # Addressed to a job that does not exist; the project is not meant.
        await handle.signal("cancel", {"job": "full.brew-coder-1"})
        await handle.signal("cancel", {"reason": "no room"})
        with pytest.raises(WorkflowFailureError) as caught:
            await asyncio.wait_for(handle.result(), 30)
        # What was made before the cancellation arrived is closed.
        late = await temporal.start_workflow(
            "Project", project("features"), id="late", task_queue="full"
        )
        await asyncio.wait_for(begun.wait(), 30)
        await late.cancel()
        with pytest.raises(WorkflowFailureError):
            await asyncio.wait_for(late.result(), 30)
    assert closed == ["cancelled"]
    assert isinstance(caught.value.cause, CancelledError)
    assert "no room" in str((await (await handle.describe()).memo())["state"])


async def test_what_cron_or_a_retry_policy_begins_again_is_refused(
    temporal: Client, root: Root
) -> None:
    # Their second run has the input of the first, which could pass for a job's record.
    async with serving(temporal, root, Short({"Work": [TEA, ASK]})) as jobs:

        async def begin(kind: str, start: dict[str, Any], **again: Any) -> WorkflowHandle[Any, Any]:
            name = f"{jobs.queue}-{kind}-{len(again)}"
            return await temporal.start_workflow(
                kind, start, id=name, task_queue=jobs.queue, **again
            )

        for kind, start in (("Job", job()), ("Project", project("features"))):
            handle = await begin(kind, start, cron_schedule="@every 1s")
            first = temporal.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
            with suppress(WorkflowContinuedAsNewError):
                await first.result(follow_runs=False)
            *_, end = [event async for event in first.fetch_history_events()]
            ended = end.workflow_execution_failed_event_attributes
            assert "a cron or a retry policy cannot begin" in ended.failure.message
            await handle.terminate()
        soon = timedelta(seconds=2)
        handle = await begin("Job", job(), retry_policy=RetryPolicy(), run_timeout=soon)
        with pytest.raises(WorkflowFailureError, match="execution failed") as failed:
            await handle.result()
        assert "a cron or a retry policy cannot begin" in str(failed.value.cause)
