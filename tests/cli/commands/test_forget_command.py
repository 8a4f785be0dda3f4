"""`forget`, and what other commands say about a job that was forgotten."""

import asyncio
import json
import threading
from typing import Any

import pytest
from temporalio.service import RPCError

from activities.checkpoints import Checkpoints, Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.steps.forget import ForgetActivity
from engine.service import build_worker
from tests.cli.stand_in import StandIn
from workflows.upkeep import ForgetWorkflow as Workflow


@pytest.fixture
def served(engine, workspaces, monkeypatch):
    """Run a worker for this test's workspaces root, on its own task queue."""
    queue = f"queue-{workspaces.parent.name}"
    root = Root.open(workspaces, create=True)
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with build_worker(
            engine.client,
            task_queue=queue,
            workflows=[StandIn, Workflow],
            activities=[ForgetActivity(root).forget],
        ):
            ready.set()
            await stop.wait()

    serving = asyncio.run_coroutine_threadsafe(serve(), engine.loop)
    assert ready.wait(10)
    monkeypatch.setenv("LONGHAUL_TASK_QUEUE", queue)
    yield queue
    engine.loop.call_soon_threadsafe(stop.set)
    serving.result(30)


def test_a_forgotten_job_is_said_to_be_that_by_every_command(
    engine: Any, starter: Any, workspaces: Any, served: str
) -> None:
    job = engine.job(f"old-{served}", queue=served)
    Checkpoints.create(Root.open(workspaces, create=False), job)
    assert "is running; only a closed one" in starter("forget", job).error
    engine.signal(job, "finish")
    engine.do(engine.client.get_workflow_handle(job).result())

    assert starter("forget", job).out == f"{job} forgotten\n"
    prefix = f"job {job} was forgotten on "
    for command in (
        ["files", job], ["log", job], ["diff", job, "1", "now"], ["report", job],
        ["fork", job, "--phase", "1"], ["rewind", job, "--issue", "x"], ["pause", job],
    ):  # fmt: skip
        assert starter(*command).error.startswith(prefix), command
    shown = starter("show", job)
    assert "completed" in shown.out
    assert prefix in shown.err
    assert json.loads(starter("show", job, "--json").out)["forgotten"].startswith(prefix)
    again = json.loads(starter("forget", job, "--json").out)
    assert (again["jobs"], again["count"]) == ([], 0)
    assert again["notes"][0].startswith(prefix)


def test_what_temporal_no_longer_knows_is_forgotten_all_the_same(
    starter: Any, workspaces: Any, served: str
) -> None:
    root = Root.open(workspaces, create=False)
    Checkpoints.create(root, "ancient")
    ProjectRepository.create(project_repository_path(root, "stone age"))
    assert starter("show", "stone age").error.startswith("Temporal has no project 'stone age', ")
    for command in ("show", "watch", "cancel"):
        error = starter(command, "ancient").error
        assert error.startswith("Temporal has no job 'ancient', whose retention may be over"), error
    assert json.loads(starter("forget", "ancient", "--json").out)["jobs"] == ["ancient"]
    assert starter("show", "ancient").error.startswith("job ancient was forgotten on")
    assert starter("files", "ancient").error.startswith("job ancient was forgotten on")
    assert "there is no job 'nobody'" in starter("forget", "nobody").error


def test_one_is_forgotten_or_a_schedule_made(engine: Any, starter: Any) -> None:
    assert "--schedule 1d" in starter("forget").error
    assert "--schedule 1d" in starter("forget", "x", "--schedule", "1d").error
    for text in ("soon", "0h", "99999999999999d", "200000d"):
        assert "expected such as 30m" in starter("forget", "--schedule", text).error
    for arguments in (["promote", "x"], ["propose"]):
        assert "goes without --schedule" in starter("guards", *arguments, "--schedule", "6h").error
    for command, name in (("forget", "forgetting"), ("guards", "learning")):
        output = starter(command, "--schedule", "99999d", "--json").out
        assert json.loads(output) == {"schedule": f"longhaul-{name}: every 99999d"}
    assert starter("forget", "--schedule", "1d").out == "longhaul-forgetting: every 1d\n"
    assert starter("guards", "--schedule", "6h").out == "longhaul-learning: every 6h\n"
    for name in ("longhaul-forgetting", "longhaul-learning"):
        schedule = engine.do(engine.client.get_schedule_handle(name).describe())
        assert schedule.schedule.action.workflow in ("Forget", "Learning")
    # The second time it is off as well.
    for _ in range(2):
        assert starter("forget", "--schedule", "off").out == "longhaul-forgetting: off\n"
        assert starter("guards", "--schedule", "off").out == "longhaul-learning: off\n"
    for name in ("longhaul-forgetting", "longhaul-learning"):
        with pytest.raises(RPCError, match="not found"):
            engine.do(engine.client.get_schedule_handle(name).describe())


def test_without_a_worker_it_says_what_it_waits_for_and_that_nothing_is_done(
    engine: Any, starter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_TASK_QUEUE", "nobody-polls-this")
    monkeypatch.setattr("cli.commands.forget_command.SILENT_SECONDS", 0.1)
    monkeypatch.setattr("cli.commands.forget_command.PATIENCE_SECONDS", 0.3)
    ran = starter("forget", "lonely")
    assert ran.code == 2
    assert ran.err.splitlines() == [
        "workflow forget-lonely waits for a worker on task queue nobody-polls-this, "
        "or is still at it",
        "error: nothing is forgotten yet; forget-lonely goes on without this",
    ]
    engine.do(engine.client.get_workflow_handle("forget-lonely").terminate())
