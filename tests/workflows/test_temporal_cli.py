"""Temporal's own command line, and so Temporal Web's forms, can do everything: plain JSON."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.query.v1 import WorkflowQuery
from temporalio.api.workflowservice.v1 import QueryWorkflowRequest
from temporalio.client import Client, WorkflowExecutionStatus, WorkflowFailureError

from activities.checkpoints import Root
from engine.development import find_temporal_binary
from rehearsal import call
from rehearsal.request_view import RequestView
from tests.workflows.deviating import Deviating
from tests.workflows.resting import Resting
from tests.workflows.serving import Jobs, serving
from tests.workflows.tea import tea


async def command(jobs: Jobs, *words: str) -> str:
    """Run the `temporal` command against the test's server."""
    process = await asyncio.create_subprocess_exec(
        str(find_temporal_binary()),
        "workflow",
        *words,
        "--address",
        jobs.client.service_client.config.target_host,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, problems = await process.communicate()
    assert process.returncode == 0, problems.decode()
    return out.decode()


@pytest.fixture
async def resting(temporal: Client, root: Root) -> AsyncIterator[Jobs]:
    """Jobs served by a model that rests within each tactical phase, as a command is slow."""

    def is_there(view: RequestView) -> bool:
        return (
            view.kind == "tactical" and view.current_todo is not None and view.current_todo.id == 2
        )

    async with serving(temporal, root, Resting(is_there)) as served:
        yield served


async def test_start_steer_and_query_with_plain_json(resting: Jobs) -> None:
    jobs, job = resting, f"{resting.queue}-plain"
    start = {"agent": "generalist", "instructions": "Write a guide on tea. Cover green tea."}
    await command(
        jobs, "start", "--type", "Job", "--task-queue", jobs.queue, "-w", job,
        "--input", json.dumps(start),
    )  # fmt: skip
    handle = jobs.client.get_workflow_handle(job, result_type=dict)
    await jobs.until(handle, waits_until=bool)
    limit = json.dumps({"tokens": 10_000_000, "phase": {"model_calls": 800}})
    await command(jobs, "signal", "-w", job, "--name", "limit", "--input", limit)
    await jobs.until(
        handle,
        limits=lambda found: (
            found["job"].get("tokens", {}).get("limit") == 10_000_000
            and found["phase"]["model_calls"]["limit"] == 800
        ),
    )
    rewind = json.dumps({"issue": "Too green.", "phase": 1})
    await command(jobs, "signal", "-w", job, "--name", "rewind", "--input", rewind)
    await jobs.until(handle, rewinds=1)
    await command(jobs, "signal", "-w", job, "--name", "pause")
    await jobs.until(handle, waiting_for="paused")
    output = await command(jobs, "query", "-w", job, "--type", "status", "-o", "json")
    assert "paused" in output
    await command(jobs, "signal", "-w", job, "--name", "resume", "--input", "{}")
    await jobs.until(handle, status="running")
    reason = json.dumps({"reason": "seen enough"})
    await command(jobs, "signal", "-w", job, "--name", "cancel", "--input", reason)
    with pytest.raises(WorkflowFailureError):
        await asyncio.wait_for(handle.result(), 20)
    assert (await handle.describe()).status == WorkflowExecutionStatus.CANCELED


async def test_what_a_person_sees_without_decoding_anything(resting: Jobs) -> None:
    jobs = resting
    handle = await jobs.start({"agent": "generalist", "instructions": "Write a guide on tea."})
    await jobs.until(handle, waits_until=bool)
    await handle.signal("pause", {})
    await jobs.until(handle, waiting_for="paused")
    details = await _details_that_say(jobs, handle.id, "waiting (paused)")
    assert details.startswith("## Write a guide on tea.")
    for part in ("**waiting**", "resume", "generalist", "☑", "▶", "tokens"):
        assert part in details
    described = await handle.describe()
    memo = await described.memo()
    assert memo["title"] == "Write a guide on tea."
    assert memo["status"] == "waiting: paused"
    attributes = {pair.key.name: pair.value for pair in described.typed_search_attributes}
    assert attributes["LonghaulAgent"] == "generalist"
    assert attributes["LonghaulStatus"] == "waiting: paused"

    summaries: dict[str, list[str]] = {}
    for event in (await handle.fetch_history()).events:
        if event.HasField("user_metadata"):
            kind = event.activity_task_scheduled_event_attributes.activity_type.name or "local"
            summaries.setdefault(kind, []).append(json.loads(event.user_metadata.summary.data))
    assert {"model_call", "transition", "local"} <= set(summaries)
    assert any(line.endswith(" · gate") for line in summaries["local"])
    assert any(" · todo " in line and "write_file" in line for line in summaries["local"])
    assert await handle.query("status")
    await handle.signal("cancel", {})


async def test_a_question_is_read_and_answered_with_plain_json(jobs: Jobs) -> None:
    question = "Which *tea* is meant?\nGreen or black?"
    ask = call("request_clarification", question=question, default="Green.")
    move = call("move_file", old="workspace.md", new="notes/here.md")
    async with serving(jobs.client, jobs.root, Deviating({2: ask, 3: move})) as asking:
        handle = await asking.start(tea(set={"approve": ["move_file"]}))
        await asking.until(handle, waiting_for="clarification")
        details = await _details_that_say(asking, handle.id, "waiting (clarification)")
        for part in (f"answer {handle.id}", "    Green or black?"):
            assert part in details
        assert "    default: Green." in details
        text = json.dumps({"text": "Black tea."})
        await command(asking, "signal", "-w", handle.id, "--name", "answer", "--input", text)
        status = await asking.until(handle, waiting_for="approval")
        details = await _details_that_say(asking, handle.id, "waiting (approval)")
        for part in (f"approve {handle.id}", "      new: notes/here.md"):
            assert part in details
        approval = json.dumps({"id": status["approval"]["id"]})
        await command(asking, "signal", "-w", handle.id, "--name", "approve", "--input", approval)
        await asking.until(handle, step=lambda step: step > 3)
        await handle.signal("cancel", {})


async def _details_that_say(jobs: Jobs, job_id: str, text: str) -> str:
    """Wait for the details, which are set a moment after a query sees the state."""
    details = await _current_details(jobs, job_id)
    async with asyncio.timeout(20):
        while text not in details:
            await asyncio.sleep(0.1)
            details = await _current_details(jobs, job_id)
    return details


async def _current_details(jobs: Jobs, job_id: str) -> str:
    """Return the details that Temporal Web requests from the worker."""
    answer: Any = await jobs.client.workflow_service.query_workflow(
        QueryWorkflowRequest(
            namespace="default",
            execution=WorkflowExecution(workflow_id=job_id),
            query=WorkflowQuery(query_type="__temporal_workflow_metadata"),
        )
    )
    metadata = json.loads(answer.query_result.payloads[0].data)
    names = {entry.get("name") for entry in metadata["definition"]["signalDefinitions"]}
    steering = {"rewind", "cancel", "pause", "resume", "limit", "answer", "approve", "deny"}
    assert steering <= names
    return str(metadata["currentDetails"])
