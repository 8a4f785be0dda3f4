"""Jobs with MCP servers, from start to result."""

from pathlib import Path

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import WorkflowExecutionStatus, WorkflowFailureError
from temporalio.exceptions import CancelledError

from tests.activities.mcp.serving import odd, public
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.short import DONE, Short, close, job
from tests.workflows.team import Team, project


async def test_a_job_works_with_reference_servers(temporal, root) -> None:
    outputs: list[str] = []

    def work(view):
        outputs.extend(done_call.result for done_call in view.calls[-1:])
        calls = [
            ("fs__write_file", {"path": "output/tea.md", "content": "green"}),
            ("everything__echo", {"message": "tea"}),
            ("search_tools", {"query": "sum of two numbers"}),
            ("everything__get-sum", {"a": 2, "b": 3}),
            DONE,
        ]
        return [calls[view.replies % len(calls)]]

    servers = {
        "everything": public("everything", "stdio"),
        "fs": public("filesystem", "{workspace}", cwd="workspace"),
    }
    model = Short({"Work": work, "Close": [close("output/tea.md")]})
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job(set={"mcp": servers, "limits.tools_offered": 60}))
        result = await jobs.result(handle)
    assert result["status"] == "completed", outputs
    assert (jobs.folder(handle) / "output/tea.md").read_text() == "green"
    assert (jobs.folder(handle) / "tools/fs__write_file.md").exists()
    assert any("Echo: tea" in text for text in outputs)
    assert any("The sum of 2 and 3 is 5" in text for text in outputs)
    history = await handle.fetch_history()
    scheduled = [
        event.activity_task_scheduled_event_attributes.activity_type.name
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]
    assert {"fs__write_file", "everything__echo", "everything__get-sum"} <= set(scheduled)


async def test_a_start_waits_for_a_server_that_is_away(temporal, root, tmp_path: Path) -> None:
    program, ledger = tmp_path / "server", tmp_path / "ledger"
    async with serving(temporal, root, Short()) as jobs:
        handle = await jobs.start(job(set={"mcp": {"odd": {"command": [str(program)]}}}))
        other = await jobs.start(job(set={"mcp": {"odd": {"command": [str(program)]}}}))
        status = await jobs.until(handle, status="waiting")
        assert status["waiting_for"] == "dependency"
        assert "The MCP server odd" in status["waiting"]["message"]
        memo = await (await handle.describe()).memo()
        assert memo["status"] == "waiting: dependency"

        python, script, path = odd(ledger)["command"]
        await jobs.until(other, status="waiting")
        await other.signal("cancel", {"reason": "no tea"})
        with pytest.raises(WorkflowFailureError) as ended:
            await jobs.result(other)
        assert isinstance(ended.value.cause, CancelledError)
        assert (await other.describe()).status == WorkflowExecutionStatus.CANCELED
        other_status = await query_status(other)
        assert "cancelled before it began: no tea" in other_status["notices"]

        program.write_text(f"#!/bin/sh\nexec {python} {script} {path}\n")
        program.chmod(0o755)
        await handle.signal("resume")
        assert (await jobs.result(handle))["status"] == "completed"
        assert (jobs.folder(handle) / "tools/odd__note.md").exists()


async def test_a_job_goes_on_without_a_server_and_says_so(temporal, root) -> None:
    openings: list[str] = []

    def plan(view):
        openings.append(view.opening)
        return [DONE]

    missing_server = {"command": ["no-such-program"], "away": "degrade"}
    async with serving(temporal, root, Short({"Hand": plan})) as jobs:
        handle = await jobs.start(job(set={"mcp": {"gone": missing_server}}))
        status = await jobs.until(handle, step=lambda step: step > 2)
        await handle.terminate()
    assert any("goes on without the tools of gone" in line for line in status["notices"])
    assert "the tools of gone" in str(openings)


async def test_a_project_shows_that_its_job_waits_for_a_server(
    temporal, root, tmp_path: Path
) -> None:
    program = tmp_path / "server"
    team = Team({"Draft it": lambda told: [("wait", {"seconds": 3600})]})
    mcp = {"mcp": {"odd": {"command": [str(program)]}}}
    async with serving(temporal, root, team) as jobs:
        stages = [{"agent": "generalist", "task": "Draft it."}]
        handle = await jobs.start(project("pipeline", stages=stages, set=mcp), kind="Project")
        status = await jobs.until(handle, waiting_for="dependency")
        assert "The MCP server odd" in status["waiting"]["message"]
        await handle.signal("pause", {})
        await jobs.until(handle, waiting_for="paused")
        python, script, path = odd(tmp_path / "ledger")["command"]
        program.write_text(f"#!/bin/sh\nexec {python} {script} {path}\n")
        program.chmod(0o755)
        await handle.signal("resume", {})
        # The new job does not pause, because the project was resumed before it began.
        child = temporal.get_workflow_handle(f"{handle.id}.stage-1-generalist-1")
        await jobs.until(child, waits_until=bool)
        status = await jobs.until(handle, waiting_for=None)
        assert [run["status"] for run in status["running"]] == ["running"]
        await handle.signal("cancel", {})
