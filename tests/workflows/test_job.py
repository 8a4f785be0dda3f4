"""A job from start to result on a real server, served by the rehearsal model."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle

from activities.checkpoints import Root, diff_files
from activities.job.snapshot import Snapshot
from activities.steps.close_job import NOT_IN_FILE
from benchmarks.histories import history_steps, workflow_histories
from cli.commands.look_commands import list_jobs
from cli.jobs.job_view import view_job
from protocol.endings import JobResult
from rehearsal import Reply, rehearse
from rehearsal.request_view import RequestView
from rehearsal.wire import Request
from tests.workflows.serving import Jobs, serving
from tests.workflows.short import DONE, Call, Short, hand_over, job, plan
from tests.workflows.tea import PAGE

WHOLE = {key: value for key, value in PAGE.items() if key != "set"}
"""With the todos of the shipped configuration."""
TASK_COMPLETED = "workflow_task_completed_event_attributes"


@dataclass
class Ended:
    """A completed job with the shipped configuration."""

    jobs: Jobs
    handle: WorkflowHandle[Any, Any]
    result: dict[str, Any]

    async def status(self) -> dict[str, Any]:
        status: dict[str, Any] = await self.handle.query("status")
        return status

    @property
    def folder(self) -> Path:
        return self.jobs.folder(self.handle)

    def snapshot(self, commit: str) -> Snapshot:
        return self.jobs.snapshot(self.handle, commit)


@pytest.fixture(scope="module")
async def ended(temporal: Client, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Ended]:
    root = Root.open(tmp_path_factory.mktemp("ended") / "root", create=True)
    async with serving(temporal, root, rehearse) as jobs:
        handle = await jobs.start(WHOLE)
        yield Ended(jobs, handle, await jobs.result(handle))


async def test_completes_with_deliverables_and_the_same_result_in_a_file(ended: Ended) -> None:
    result = ended.result
    assert result["status"] == "completed"
    assert result["deliverables"]
    for path in result["deliverables"]:
        assert (ended.folder / path).stat().st_size > 0
    written = json.loads((ended.folder / "output/completion.json").read_text())
    # Without a schema a job has no typed result.
    assert written == JobResult.model_validate(result).model_dump(
        exclude={**NOT_IN_FILE, "result": True}
    )
    assert result["usage"] == (await ended.status())["usage"]
    # The completion closes the todos that are left.
    status = await ended.status()
    assert {todo["status"] for todo in status["todos"]} == {"completed"}


async def test_two_runs_of_the_same_job_end_in_the_same_tree(
    temporal: Client, root: Root, undisturbed: str
) -> None:
    async with serving(temporal, root, Short()) as jobs:
        again = await jobs.result(await jobs.start(job()))
    assert again["tree"] == undisturbed


async def test_folder_agrees_with_the_last_checkpoint(ended: Ended) -> None:
    result = ended.result
    files = ended.snapshot(result["checkpoint"]).files
    for entry in files.walk():
        on_disk = ended.folder / entry.path
        assert (
            on_disk.is_dir()
            if entry.kind == "folder"
            else on_disk.read_bytes() == files.read(entry.path)
        )


async def test_phases_are_archived_in_pairs_and_alternate(temporal: Client, root: Root) -> None:
    def mark(view: RequestView) -> Sequence[Call]:
        # A second list, once.
        return [plan("[x] Boil", "[x] Brew") if view.number > 3 else hand_over({}), DONE]

    async with serving(temporal, root, Short({"Mark": mark})) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        folder = jobs.folder(handle)
    pages = sorted((folder / "archive").iterdir())
    assert [page.name for page in pages] == [
        f"phase_{n:03d}.{ending}"
        for n in range(1, result["phases"] + 1)
        for ending in ("md", "yaml")
    ]
    read = [yaml.safe_load(page.read_text()) for page in pages if page.suffix == ".yaml"]
    assert [page["kind"] for page in read[:4]] == ["strategic", "tactical"] * 2
    assert read[0]["outcome"] == "completed"
    assert all(todo["status"] == "completed" for todo in read[1]["todos"])
    assert not (folder / "todos.yaml").exists()


async def test_every_phase_begins_with_a_fresh_conversation_and_a_list(ended: Ended) -> None:
    """The order at the change: archived, summarized, next list in the state, new conversation."""
    status = await ended.status()
    for start in status["checkpoints"][1:]:
        snapshot = ended.snapshot(start["id"])
        before = snapshot.checkpoints.log(start["id"], 2)[1]
        assert snapshot.state.phase.number == start["phase"]
        assert snapshot.state.phase.current is not None
        assert [message["role"] for message in snapshot.conversation.messages()] == [
            "system",
            "user",
        ]
        earlier = ended.snapshot(before.id)
        changed = {change.path for change in diff_files(earlier.files, snapshot.files)}
        page = f"archive/phase_{start['phase'] - 1:03d}"
        assert {f"{page}.md", f"{page}.yaml", "workspace_summary.md"} <= changed
        assert snapshot.files.entry("todos.yaml") is None


async def test_strategic_phases_are_oriented_by_summary_plan_instructions_and_archive(
    ended: Ended,
) -> None:
    status = await ended.status()
    third = ended.snapshot(status["checkpoints"][2]["id"])
    system, orientation = third.conversation.messages()
    assert third.read_text("workspace.md").strip() in system["content"]
    for part in ("workspace_summary.md", "plan.md", "instructions.md"):
        assert third.read_text(part).strip()[:200] in orientation["content"]
    assert third.read_text("archive/phase_002.md").strip()[:200] in orientation["content"]


async def test_history_carries_references_only(ended: Ended) -> None:
    runs = await workflow_histories(ended.jobs.client, ended.handle.id)
    steps = history_steps(runs, "model_call")
    # 2 KB with one tool call; the median step has two, and a call adds half a KB.
    assert steps.median_bytes <= 2_048 + 512
    assert steps.median_events <= 8 + 1
    last = ended.snapshot((await ended.status())["checkpoint"])
    text = b"".join(event.SerializeToString() for run in runs for event in run)
    assert last.read_text("workspace.md")[:60].encode() not in text


@pytest.fixture(scope="module")
async def chained(ended: Ended) -> Ended:
    """Run the same job, continued as new repeatedly."""
    handle = await ended.jobs.start({**WHOLE, "set": {"limits.history_events": 100}})
    # The pause makes its last run begin well after the first, however fast it works.
    await handle.signal("pause", {})
    await ended.jobs.until(handle, waiting_for="paused")
    await asyncio.sleep(1)
    await handle.signal("resume", {})
    return Ended(ended.jobs, handle, await ended.jobs.result(handle))


async def test_continues_as_new_in_the_middle_of_phases(ended: Ended, chained: Ended) -> None:
    client, first = chained.jobs.client, chained.handle
    described = await client.get_workflow_handle(first.id).describe()
    assert described.run_id != first.first_execution_run_id
    assert described.history_length < 200
    for name in ("status", "deliverables", "phases", "usage"):
        assert chained.result[name] == ended.result[name]


async def test_over_all_its_runs_it_is_told_when_the_first_began(chained: Ended) -> None:
    client, first = chained.jobs.client, chained.handle
    begun = await client.get_workflow_handle(
        first.id, run_id=first.first_execution_run_id
    ).describe()
    newest = await client.get_workflow_handle(first.id).describe()
    assert newest.start_time > begun.start_time + timedelta(seconds=1)
    assert (await view_job(client, first.id)).started == begun.start_time.replace(microsecond=0)


async def test_workflow_task_that_continues_as_new_or_completes_runs_no_local_activity(
    chained: Ended,
) -> None:
    """A signal during one makes the server ask again, and the activity would run twice."""
    client, job_id = chained.jobs.client, chained.handle.id
    runs = 0
    async for run in client.list_workflows(f'WorkflowId="{job_id}"'):
        history = await client.get_workflow_handle(job_id, run_id=run.run_id).fetch_history()
        kinds = [event.WhichOneof("attributes") for event in history.events]
        assert kinds[-1] in (
            "workflow_execution_continued_as_new_event_attributes",
            "workflow_execution_completed_event_attributes",
        )
        last_task = max(n for n, kind in enumerate(kinds) if kind == TASK_COMPLETED)
        assert "marker_recorded_event_attributes" not in kinds[last_task:]
        runs += 1
    assert runs > 3


async def test_a_start_that_failed_is_listed_with_its_agent(ended: Ended) -> None:
    handle = await ended.jobs.start({"agent": "nobody", "instructions": "x"})
    with pytest.raises(WorkflowFailureError):
        await ended.jobs.result(handle)
    rows: list[tuple[Any, ...]] = []
    # Temporal's list is updated with a delay, and begins with the open jobs of other tests.
    for _ in range(600):
        rows = [
            (one["agent"], one["status"], one["phase"])
            for one in (await list_jobs(ended.jobs.client, 1_000))[0]
            if one["job_id"] == handle.id
        ]
        if rows == [("nobody", "failed", None)]:
            return
        await asyncio.sleep(0.1)
    pytest.fail(str(rows))


class Slow(Short):
    """Takes its time for the first reply."""

    answered = 0

    def __call__(self, request: Request) -> Reply:
        if not self.answered:
            time.sleep(2.5)
            self.answered = int(time.time())
        return super().__call__(request)


async def test_a_step_has_the_time_at_which_its_reply_came(temporal: Client, root: Root) -> None:
    model = Slow()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(job())
        result = await jobs.result(handle)
        snapshot = jobs.snapshot(handle, result["checkpoint"])
        _, reply, first_call, *_ = reversed(snapshot.checkpoints.log(snapshot.commit, 100))
    assert "reply:" in reply.message
    assert reply.timestamp >= model.answered
    assert first_call.timestamp >= reply.timestamp
