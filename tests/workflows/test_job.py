"""A job from start to result on a real server, served by the rehearsal model."""

from __future__ import annotations

import json

import yaml

from activities.checkpoints import diff
from tests.workflows.serving import Jobs

TASK_COMPLETED = "workflow_task_completed_event_attributes"
TEA = {"agent": "generalist", "instructions": "Write a guide on tea. Cover green tea."}


async def test_completes_with_deliverables_and_the_same_result_in_a_file(jobs: Jobs) -> None:
    handle = await jobs.start(TEA)
    result = await jobs.result(handle)
    assert result["status"] == "completed"
    assert result["deliverables"]
    for path in result["deliverables"]:
        assert (jobs.folder(handle) / path).stat().st_size > 0
    written = json.loads((jobs.folder(handle) / "output/completion.json").read_text())
    assert written == {k: v for k, v in result.items() if k not in ("checkpoint", "tree")}
    # The completion closes what is left of the list.
    status = await handle.query("status")
    assert {todo["status"] for todo in status["todos"]} == {"completed"}


async def test_two_runs_of_the_same_job_end_in_the_same_tree(jobs: Jobs) -> None:
    first, second = [await jobs.result(await jobs.start(TEA)) for _ in range(2)]
    assert first["tree"] == second["tree"]
    assert first["checkpoint"] != second["checkpoint"]


async def test_folder_agrees_with_the_last_checkpoint(jobs: Jobs) -> None:
    handle = await jobs.start(TEA)
    result = await jobs.result(handle)
    files = jobs.snapshot(handle, result["checkpoint"]).files
    for entry in files.walk():
        on_disk = jobs.folder(handle) / entry.path
        assert (
            on_disk.is_dir()
            if entry.kind == "folder"
            else on_disk.read_bytes() == files.read(entry.path)
        )


async def test_phases_are_archived_in_pairs_and_alternate(jobs: Jobs) -> None:
    handle = await jobs.start(TEA)
    result = await jobs.result(handle)
    pages = sorted((jobs.folder(handle) / "archive").iterdir())
    assert [page.name for page in pages] == [
        f"phase_{n:03d}.{ending}"
        for n in range(1, result["phases"] + 1)
        for ending in ("md", "yaml")
    ]
    read = [yaml.safe_load(page.read_text()) for page in pages if page.suffix == ".yaml"]
    assert [page["kind"] for page in read[:4]] == ["strategic", "tactical"] * 2
    assert read[0]["outcome"] == "completed"
    assert all(todo["status"] == "completed" for todo in read[1]["todos"])
    assert not (jobs.folder(handle) / "todos.yaml").exists()


async def test_every_phase_begins_with_a_fresh_conversation_and_a_list(jobs: Jobs) -> None:
    """The turn's order: archived, summarised, next list in state, fresh conversation."""
    handle = await jobs.start(TEA)
    await jobs.result(handle)
    status = await handle.query("status")
    for start in status["checkpoints"][1:]:
        snapshot = jobs.snapshot(handle, start["id"])
        before = snapshot.checkpoints.log(start["id"], 2)[1]
        assert snapshot.state.phase.number == start["phase"]
        assert snapshot.state.phase.current is not None
        assert [message["role"] for message in snapshot.conversation.messages()] == [
            "system",
            "user",
        ]
        earlier = jobs.snapshot(handle, before.id)
        changed = {change.path for change in diff(earlier.files, snapshot.files)}
        page = f"archive/phase_{start['phase'] - 1:03d}"
        assert {f"{page}.md", f"{page}.yaml", "workspace_summary.md"} <= changed
        assert snapshot.files.entry("todos.yaml") is None


async def test_strategic_phases_are_oriented_by_summary_plan_instructions_and_archive(
    jobs: Jobs,
) -> None:
    handle = await jobs.start(TEA)
    await jobs.result(handle)
    status = await handle.query("status")
    third = jobs.snapshot(handle, status["checkpoints"][2]["id"])
    system, orientation = third.conversation.messages()
    assert third.text("workspace.md").strip() in system["content"]
    for part in ("workspace_summary.md", "plan.md", "instructions.md"):
        assert third.text(part).strip()[:200] in orientation["content"]
    assert third.text("archive/phase_002.md").strip()[:200] in orientation["content"]


async def test_history_carries_references_only(jobs: Jobs) -> None:
    handle = await jobs.start(TEA)
    await jobs.result(handle)
    history = await handle.fetch_history()
    text = history.to_json()
    status = await handle.query("status")
    last = jobs.snapshot(handle, status["checkpoint"])
    assert len(text) / status["step"] < 8_000
    assert last.text("workspace.md")[:60] not in text


async def test_continues_as_new_in_the_middle_of_phases(jobs: Jobs) -> None:
    whole = await jobs.result(await jobs.start(TEA))
    handle = await jobs.start({**TEA, "set": {"limits.history_events": 100}})
    result = await jobs.result(handle)
    described = await jobs.client.get_workflow_handle(handle.id).describe()
    assert described.run_id != handle.first_execution_run_id
    assert described.history_length < 200
    for name in ("status", "deliverables", "phases", "usage"):
        assert result[name] == whole[name]


async def test_workflow_task_that_continues_as_new_or_completes_runs_no_local_activity(
    jobs: Jobs,
) -> None:
    """A signal that arrives during one makes the server ask again: it would run twice."""
    handle = await jobs.start({**TEA, "set": {"limits.history_events": 100}})
    await jobs.result(handle)
    runs = 0
    async for run in jobs.client.list_workflows(f'WorkflowId="{handle.id}"'):
        history = await jobs.client.get_workflow_handle(
            handle.id, run_id=run.run_id
        ).fetch_history()
        kinds = [event.WhichOneof("attributes") for event in history.events]
        assert kinds[-1] in (
            "workflow_execution_continued_as_new_event_attributes",
            "workflow_execution_completed_event_attributes",
        )
        last_task = max(n for n, kind in enumerate(kinds) if kind == TASK_COMPLETED)
        assert "marker_recorded_event_attributes" not in kinds[last_task:]
        runs += 1
    assert runs > 3
