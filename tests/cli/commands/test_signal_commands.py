"""A person steers a real job with commands, following what they print."""

import asyncio
import json
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import WorkflowFailureError

from activities.checkpoints import Root
from rehearsal import Hang
from rehearsal.request_view import RequestView
from tests.workflows.resting import Resting
from tests.workflows.serving import SECONDS, Jobs, serving
from tests.workflows.short import DONE, Short, hand_over, job


def at_work(view: RequestView) -> bool:
    """Return whether a phase of work has begun with its first todo."""
    return bool(view.current_todo and view.current_todo.text.startswith("Work"))


def wait_for_status(engine: Any, jobs: Jobs, handle: Any, **wanted: Any) -> dict[str, Any]:
    """Return the status once it is as wanted: a query, where a command reads the history."""
    watching = jobs.until(handle, **wanted)
    return dict(asyncio.run_coroutine_threadsafe(watching, engine.loop).result(SECONDS))


def test_a_rewind_prints_what_it_undid_and_a_command_that_undoes_it(
    engine: Any, starter: Any, workspaces: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Root.open(workspaces, create=True)
    name = f"tea-{workspaces.parent.name}"
    verbs = {"Hand": [hand_over({}), DONE], "Rethink": [DONE]}
    # The fork's first steps do not matter here.
    model = Resting(at_work, Short({**verbs, "Bring": [("list_files", {})]}))

    context = serving(engine.client, root, model)
    jobs = engine.do(context.__aenter__())
    monkeypatch.setenv("LONGHAUL_TASK_QUEUE", jobs.queue)
    until = partial(wait_for_status, engine, jobs)
    try:
        handle = engine.do(jobs.start(job(), job_id=name))
        until(handle, waits_until=bool)
        ran = starter("pause", name)
        assert "1 call of the last reply is still to be carried out: wait." in ran.out
        (workspaces / name / "mine.md").write_text("Mine.\n")
        assert starter("resume", name).code == 0
        shown = starter("show", name).out
        assert "let the job go on at " in shown
        assert ": files edited: mine.md (new)" in shown
        assert "edited mine.md (new)" in starter("log", name).out

        ran = starter("rewind", name, "--phase", "1", "--issue", "Begin anew.")
        assert "undone: phases 1 to 2; files as at the start of phase 1" in ran.out
        assert not (workspaces / name / "mine.md").exists()
        until(handle, phase=lambda phase: phase["number"] == 4)
        commands = [text for text in ran.out.split("`") if text.startswith("starter.py ")]
        listing, undoing = (shlex.split(text)[1:] for text in commands)
        assert "removed                   46  plan.md" in starter(*listing).out
        assert undoing[:4] == ["rewind", name, "--phase", "2"]
        assert starter(*undoing).code == 0
        # The state at the start of phase 2 is restored, not what was edited during it.
        assert "plan.md" in starter("files", name).out
        until(handle, phase=lambda phase: phase["number"] > 4)

        starter("cancel", name)
        closed = starter("rewind", name, "--issue", "Once more.").error
        assert f"job {name} is closed (cancelled); it takes no signals" in closed
        [forking] = [text for text in closed.split("`") if text.startswith("starter.py fork")]
        assert "with --phase N from a phase of it" in closed
        ran = starter(*shlex.split(forking)[1:], "--instructions", "For two.", "--json")
        fork = json.loads(ran.out)["job_id"]
        handle = engine.client.get_workflow_handle(fork)
        status = until(handle, phase=lambda phase: phase["purpose"] == "fork")
        assert status["phase"]["number"] > 1
        starter("cancel", fork)
    finally:
        engine.do(context.__aexit__(None, None, None))


@pytest.fixture(name="jobs")
def serve_hanging_jobs(
    engine: Any, workspaces: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Jobs]:
    """Serve jobs whose model never answers."""
    context = serving(engine.client, Root.open(workspaces, create=True), lambda request: Hang())
    jobs = engine.do(context.__aenter__())
    monkeypatch.setenv("LONGHAUL_TASK_QUEUE", jobs.queue)
    yield jobs
    engine.do(context.__aexit__(None, None, None))


def test_an_id_is_free_again_whose_start_was_refused(
    engine: Any, starter: Any, workspaces: Path, jobs: Jobs
) -> None:
    name = f"refused-{workspaces.parent.name}"
    starting = ["start", "coder", "--instructions", "Make tea.", "--id", name]
    assert starter(*starting, "--set", 'shell.path=["/no-such/bin"]').code == 0
    handle = engine.client.get_workflow_handle(name)
    with pytest.raises(WorkflowFailureError):
        engine.do(handle.result())
    assert starter(*starting).code == 0
    wait_for_status(engine, jobs, handle, phase=lambda phase: phase and phase["number"] == 1)
    starter("cancel", name)


def test_an_id_is_free_again_whose_start_was_cancelled_while_it_waited(
    engine: Any, starter: Any, workspaces: Path, jobs: Jobs
) -> None:
    name = f"again-{workspaces.parent.name}"
    starting = ["start", "generalist", "--instructions", "Make tea.", "--id", name]
    lacking = 'mcp={"tea": {"command": ["/no-such-server"]}}'
    assert starter(*starting, "--set", lacking).code == 0
    handle = engine.client.get_workflow_handle(name)
    wait_for_status(engine, jobs, handle, waiting_for="dependency")
    shown = starter("show", name).out
    assert "waiting (dependency)" in shown
    assert "/no-such-server" in shown
    # A list has one line for it, not everything that is missing.
    [row] = [line for line in starter("list").out.splitlines() if line.startswith(name)]
    assert len(" ".join(row.split())) < 300
    assert f"{name} cancelled" in starter("cancel", name).out
    assert "cancelled before it began: by " in starter("show", name).out
    assert starter(*starting).code == 0
    wait_for_status(engine, jobs, handle, phase=lambda phase: phase and phase["number"] == 1)
    shown = starter("show", name).out
    assert "phase 1" in shown
    assert "running · generalist" in shown
    # A job that began keeps its id.
    starter("cancel", name)
    assert f"there was a job {name} already (cancelled)" in starter(*starting).error
