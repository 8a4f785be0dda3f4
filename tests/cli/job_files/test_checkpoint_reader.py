"""`list`, `show`, `watch`, `files` and `log`."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from io import StringIO
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from rich.console import Console
from temporalio.client import (
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowQueryFailedError,
)

from activities.checkpoints import Checkpoints, Root
from activities.job.snapshot import Snapshot
from cli.app import main
from cli.commands.look_commands import list_jobs
from cli.job_files import checkpoint_reader
from cli.jobs.job_view import query_job_status
from cli.jobs.watch import follow_on_console
from cli.report.job_report import BROKEN
from config.agent_files import load_agent
from engine.setup_errors import TOO_EARLY
from protocol.endings import JobResult
from protocol.errors import Refusal
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.status import JobStatus
from protocol.todo_list import Todo
from tests.cli.conftest import tries


def test_list_shows_each_job_and_needs_no_worker(engine, starter):
    engine.job("listed-here", "Read this")
    engine.status("listed-here")  # its memo is written
    for _ in tries():  # visibility follows with a short delay
        jobs = {job["job_id"]: job for job in json.loads(starter("list", "--json").out)}
        if "listed-here" in jobs and jobs["listed-here"]["title"]:
            break
    job = jobs["listed-here"]
    assert (job["agent"], job["status"], job["title"]) == ("generalist", "running", "Read this")
    assert "listed-here" in starter("list").out


def test_show_tells_phase_todos_and_usage(engine, starter):
    engine.job("shown")
    ran = starter("show", "shown")
    assert ran.code == 0
    for part in (
        "shown · Read the law",
        "phase 2 · tactical · Extraction · plan 1 of 3",
        "▶ 1. Step 1",
        "☐ 2. Step 2",
        "12 model calls · 30 tool calls · 45,678 tokens · cost 0.5000",
    ):
        assert part in ran.out
    details = json.loads(starter("show", "shown", "--json").out)
    assert details["live"] is True
    assert details["phase"]["number"] == 2


def test_show_without_a_worker_tells_the_last_state_on_record(engine, starter):
    memo = {
        "title": "Left alone",
        "agent": "creator",
        "status": "waiting: budget",
        "phase": "4 tactical",
        "state": "phase 4 (tactical) Reading, 1/5 todos",
    }
    start = engine.client.start_workflow(
        "Job", {}, id="orphan", task_queue="nobody-polls", memo=memo
    )
    engine.do(start)
    ran = starter("show", "orphan")
    assert ran.code == 0
    assert "no worker answers" in ran.err
    assert "orphan · Left alone" in ran.out
    assert "phase 4 (tactical) Reading" in ran.out
    assert "waiting (budget)" in ran.out
    assert "1/5 todos" in ran.out
    assert "model calls" not in ran.out
    assert ran.out.splitlines()[-1].startswith("running for 0:")
    engine.do(engine.client.get_workflow_handle("orphan").terminate())
    ended = starter("show", "orphan").out
    assert "terminated · creator\nterminated: terminated by user" in ended
    assert ended.splitlines()[-1].startswith("ran for 0:")
    assert "model calls" not in ended


def test_show_of_a_failed_job_says_why(engine, starter):
    handle = engine.client.get_workflow_handle(engine.job("failed", "bad start"))
    with pytest.raises(WorkflowFailureError):
        engine.do(handle.result())
    details = json.loads(starter("show", "failed", "--json").out)
    assert details["status"] == "failed"
    assert details["error"] == "agent 'x' is not known"


def test_show_knows_how_temporal_ended_a_job(engine, starter):
    for how in ("cancel", "terminate"):
        handle = engine.client.get_workflow_handle(engine.job(f"ended-by-{how}"))
        engine.do(getattr(handle, how)())
        for _ in tries():
            details = json.loads(starter("show", handle.id, "--json").out)
            if details["status"] != "running":
                break
        assert details["status"] == {"cancel": "cancelled", "terminate": "terminated"}[how]


def test_watch_prints_a_line_per_change_and_the_result(engine, starter, between_looks):
    engine.job("watched")
    between_looks("pause", "finish")
    ran = starter("watch", "watched")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("running · phase 2")
    assert lines[0].endswith("0/5 · 1. Step 1")
    assert any("waiting (paused): Paused by a person. Resume." in line for line in lines)
    assert "All is done." in lines


def test_watch_as_json_is_an_object_per_change(engine, starter, between_looks):
    engine.job("watched-json")
    between_looks("cancel")
    ran = starter("watch", "watched-json", "--json")
    assert ran.code == 1
    states = [json.loads(line)["status"] for line in ran.out.splitlines()]
    assert states[0] == "running"
    assert states[-1] == "cancelled"


def test_on_a_terminal_watch_paints_steps_and_todos(engine, workspaces, between_looks):
    engine.job("painted")
    between_looks("finish")
    out = StringIO()
    console = Console(file=out, force_terminal=True, width=100, color_system=None)
    view = engine.do(follow_on_console(console, engine.client, "painted"))
    assert view.status.status == "completed"
    for part in ("▶ 1. Step 1", "☑ 5. Step 5", "5/5", "phase 2 · todo 1 · read_file a.md"):
        assert part in out.getvalue()


@pytest.fixture
def stored_job(engine, workspaces):
    """Return a job with two checkpoints, the first of which starts phase 1."""
    root = Root.open(workspaces, create=True)
    job = f"kept-{workspaces.parent.name}"
    store = Checkpoints.create(root, job)
    todos = [Todo(id=1, content="Read")]
    phase = Phase(number=1, kind="strategic", purpose="bootstrap", name="Start", todos=todos)
    snapshot = Snapshot.start(store, load_agent("generalist"), JobState(phase=phase))
    snapshot.files = snapshot.files.write("notes/a.md", b"before\n")
    first = snapshot.save("phase 1 · start", 1_700_000_000)
    snapshot.files = snapshot.files.write("notes/a.md", b"after\n").write("plan.md", b"# Plan\n")
    snapshot.files = snapshot.files.write("tools/a.md", b"a").write("output/z.md", b"zz")
    snapshot.files = snapshot.files.write("repo/__pycache__/a.pyc", b"a")
    second = snapshot.save("phase 1 · todo 1 · write_file notes/a.md", 1_700_000_060)
    known = {"checkpoint": second, "checkpoints": [{"phase": 1, "id": first}]}
    return engine.job(job, set=known)


class LaterState(JobState):
    """The state of a job in a later version."""

    steeped: int = 0


def checkpoint_fields(job, **fields):
    status = JobStatus(job_id=job, **fields)
    checkpoint_reader.add_checkpoint_fields(status)
    return status.checkpoint, status.tree


def test_a_checkpoint_of_a_later_version_is_one_line_that_says_so(engine, stored_job, starter):
    store = checkpoint_reader.open_checkpoints_for_reading(stored_job)
    snapshot = Snapshot.load(store, engine.status(stored_job)["checkpoint"])
    snapshot.state = LaterState(phase=snapshot.state.phase, steeped=3)
    later = snapshot.save("phase 1 · todo 1 · steep", 1_700_000_120)
    told = "a later version of Longhaul wrote the checkpoint, whose state.json has what this one "
    with pytest.raises(Refusal, match=rf"{told}does not know \(steeped\); use that version"):
        checkpoint_reader.files_at_checkpoint(store, later)
    assert checkpoint_fields(stored_job, checkpoint=later) == (later, None)


def test_show_has_the_tree_of_the_checkpoint(engine, stored_job, starter):
    store = checkpoint_reader.open_checkpoints_for_reading(stored_job)
    details = json.loads(starter("show", stored_job, "--json").out)
    assert details["checkpoint"] == engine.status(stored_job)["checkpoint"]
    snapshot = Snapshot.load(store, details["checkpoint"])
    assert details["tree"] == snapshot.comparable_tree
    snapshot.files = snapshot.files.write("notes/run.log", b"at 12:01\n")
    later = snapshot.save("phase 1 · todo 1 · run_command", 1_700_000_120)
    assert store.tree_id(later) != details["tree"]
    # Files that differ from run to run are not part of it.
    assert checkpoint_fields(stored_job, checkpoint=later) == (later, details["tree"])


def test_the_tree_of_a_closed_job_is_that_of_its_result_or_of_its_tag(engine, stored_job):
    result = JobResult(status="completed", checkpoint="c", tree="t")
    assert checkpoint_fields(stored_job, status="completed", result=result) == ("c", "t")
    store, newest = (
        checkpoint_reader.open_checkpoints_for_reading(stored_job),
        engine.status(stored_job)["checkpoint"],
    )
    store.tag("cancelled", newest)
    tree = Snapshot.load(store, newest).comparable_tree
    assert checkpoint_fields(stored_job, status="cancelled") == (newest, tree)


def test_a_tree_that_is_not_here_is_told_as_none(engine, stored_job, starter):
    engine.job("far-away", set={"checkpoint": "0" * 40})
    details = json.loads(starter("show", "far-away", "--json").out)
    assert (details["checkpoint"], details["tree"]) == ("0" * 40, None)
    assert checkpoint_fields(stored_job, checkpoint="0" * 40) == ("0" * 40, None)


def test_files_lists_and_prints_any_checkpoint(stored_job, starter):
    listing = starter("files", stored_job)
    listed = listing.out.split()
    assert listed == ["2", "output/z.md", "6", "notes/a.md", "7", "plan.md"]
    assert "2 files of the system and of caches: --all" in listing.err
    assert "tools/a.md" in starter("files", stored_job, "--all").out
    assert starter("files", stored_job, "--at", "1").out.split() == ["7", "notes/a.md"]
    assert "notes/a.md" in starter("files", stored_job, "notes").out
    file_data = json.loads(starter("files", stored_job, "notes/a.md", "--json").out)
    assert file_data["content"] == "after\n"
    file_data = json.loads(starter("files", stored_job, "notes/a.md", "--at", "1", "--json").out)
    assert file_data["content"] == "before\n"
    assert "no file 'nothing'" in starter("files", stored_job, "nothing").error
    assert starter("files", stored_job, "--at", "now").out.split() == listed
    assert "phases: 1" in starter("files", stored_job, "--at", "7").error
    assert "or now" in starter("files", stored_job, "--at", "then").error
    assert ".." in starter("files", stored_job, "../x").error


def test_a_file_is_printed_byte_for_byte(engine, stored_job, monkeypatch, capsysbinary):
    monkeypatch.setenv("TEMPORAL_ADDRESS", engine.address)
    assert main(["files", stored_job, "notes/a.md"]) == 0
    assert capsysbinary.readouterr().out == b"after\n"


def test_log_tells_the_steps(stored_job, starter):
    lines = starter("log", stored_job).out.splitlines()
    assert [line.split("  ")[2] for line in lines] == [
        "phase 1 · start",
        "phase 1 · todo 1 · write_file notes/a.md",
    ]
    assert len(json.loads(starter("log", stored_job, "--json").out)) == 2


def test_log_and_report_say_where_steps_before_are_damaged(stored_job, starter):
    store = checkpoint_reader.open_checkpoints_for_reading(stored_job)
    assert "damaged" not in starter("log", stored_job).err
    [journal] = (store.path / "journal").iterdir()
    journal.write_bytes(
        journal.read_bytes().replace(b"phase 1 \xc2\xb7 start", b"Phase 1 garbled!")
    )
    store.store.reload()
    ran = starter("log", stored_job)
    assert "write_file notes/a.md" in ran.out
    assert "the steps before these are damaged or not in this store" in ran.err
    report = json.loads(starter("report", stored_job, "--json").out)
    assert BROKEN in report["remarks"]


def test_a_job_without_checkpoints_here_says_so(engine, starter, workspaces):
    engine.job("elsewhere")
    Root.open(workspaces, create=True)
    assert "no checkpoints" in starter("files", "elsewhere").error


@pytest.mark.parametrize("command", ["files {}", "log {}", "diff {} 1 now", "report {}"])
def test_a_job_that_failed_at_its_start_says_why_it_has_no_checkpoints(
    engine, starter, workspaces, command
):
    job = engine.job(f"unmade-{command.split()[0]}", "bad start")
    with pytest.raises(WorkflowFailureError):
        engine.do(engine.client.get_workflow_handle(job).result())
    message = f"job {job} failed before its first checkpoint: agent 'x' is not known"
    assert starter(*command.format(job).split()).error == message
    # A start that gets this far leaves a repository behind.
    Checkpoints.create(Root.open(workspaces, create=True), job)
    assert starter(*command.format(job).split()).error == message


def test_a_job_that_no_worker_has_taken_has_not_begun(engine, starter, workspaces):
    engine.do(engine.client.start_workflow("Job", {}, id="untaken", task_queue="nobody-polls"))
    Root.open(workspaces, create=True)
    assert "job untaken has not begun yet" in starter("files", "untaken").error


def test_without_the_jobs_word_the_tags_tell_where_phases_began(engine, stored_job):
    store = checkpoint_reader.open_checkpoints_for_reading(stored_job)
    newest = engine.status(stored_job)["checkpoint"]
    first = checkpoint_reader.read_checkpoint_log(store, newest)[0].id
    store.tag("phase/0001", first)
    store.tag("phase/0002", newest)
    unknown = checkpoint_reader.CheckpointPlaces(None, {})
    assert checkpoint_reader.checkpoint_commit_at(unknown, store, 1) == first
    assert checkpoint_reader.checkpoint_commit_at(unknown, store, None) == newest


def test_a_project_that_failed_is_listed_as_failed() -> None:
    class Visibility:
        """Reports the workflow of each job as completed."""

        async def list_workflows(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
            for status in ("failed", "completed"):
                yield SimpleNamespace(
                    id=status,
                    run_id="run",
                    memo=AsyncMock(return_value={"status": status}),
                    status=WorkflowExecutionStatus.COMPLETED,
                    start_time=datetime(2026, 1, 2, tzinfo=UTC),
                )

    client: Any = Visibility()
    statuses = {job["job_id"]: job["status"] for job in asyncio.run(list_jobs(client, 2))[0]}
    assert statuses == {"failed": "failed", "completed": "completed"}


@pytest.mark.parametrize(
    ("reason", "answer", "times"), [(TOO_EARLY, {"phase": 1}, 2), ("it does not replay", None, 1)]
)
async def test_only_a_query_that_came_too_early_is_asked_again(reason, answer, times):
    query = AsyncMock(side_effect=[WorkflowQueryFailedError(reason), {"phase": 1}])
    client = Mock(get_workflow_handle=lambda _, run_id: Mock(query=query))
    assert await query_job_status(client, "some-job", 5) == answer
    assert query.await_count == times
