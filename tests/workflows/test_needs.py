"""What a project needs in the sandbox is tried before any model call is paid for."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client, WorkflowFailureError

from activities.checkpoints import Root
from activities.commands import sandbox
from activities.projects.runner_commands import failing_required_command, required_commands
from config.agent_files import load_agent
from protocol.project_start import ProjectStart
from tests.workflows.serving import serving
from tests.workflows.team import Team, project

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")


async def test_a_project_waits_for_what_it_needs_and_begins_once_it_is_there(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    shell = {"shell.readable": [str(tools)], "shell.path": [str(tools)]}
    team = Team({})
    start = project("features", needs=["test-runner --version"], set=shell)
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(start, kind="Project")
        status = await jobs.until(handle, waiting_for="dependency")
        message = status["waiting"]["message"]
        assert "The project needs `test-runner --version`" in message
        assert "exit code 127" in message
        assert "Install it where the sandbox sees it" in message
        assert "resume tries at once" in status["waiting"]["remedy"]
        assert team.asked == []
        assert f"`starter.py project FILE --id {handle.id}`" in message
        runner = tools / "test-runner"
        runner.write_text("#!/bin/sh\necho 1.0\n")
        runner.chmod(0o755)
        await handle.signal("resume", {})
        status = await jobs.until(handle, waiting_for=None)
        await handle.signal("cancel", {})


async def test_a_start_with_other_needs_takes_the_id_of_one_that_was_cancelled(
    temporal: Client, root: Root
) -> None:
    async with serving(temporal, root, Team({})) as jobs:
        lacking_one = project("features", needs=["no-such-runner --version"])
        handle = await jobs.start(lacking_one, kind="Project", job_id="mended-needs")
        await jobs.until(handle, waiting_for="dependency")
        await handle.signal("cancel", {})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)
        mended = project("features", needs=["ls /"])
        handle = await jobs.start(mended, kind="Project", job_id="mended-needs")
        status = await jobs.until(handle, running=bool)
        assert status["waiting"] is None
        await handle.signal("cancel", {})


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ({"needs": ["make --version"]}, ["make --version"]),
        ({"tests": {"unit": "python3 -m pytest -q"}}, ["python3 -m pytest --version"]),
        ({"tests": {"unit": "pytest", "api": "go test ./..."}}, ["pytest --version"]),
        ({"needs": ["a"], "tests": {"unit": "cd x && python3 -m unittest"}}, ["a"]),
    ],
)
def test_runners_of_settled_tests_are_needed_as_well(
    start: dict[str, Any], expected: list[str]
) -> None:
    project_start = ProjectStart.model_validate({"form": "features", "instructions": "x", **start})
    assert required_commands(project_start) == expected


def test_each_agents_own_sandbox_is_tried(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)  # Commands of a worker that is root run as nobody.
    project_start = ProjectStart.model_validate(
        {"form": "features", "instructions": "x", "needs": [f"ls {tmp_path}"]}
    )
    sees = load_agent("coder", {"shell.readable": [str(tmp_path)]})
    assert failing_required_command(project_start, [sees]) == ""
    assert "fails in the sandbox (exit code 2" in failing_required_command(
        project_start, [sees, load_agent("tester")]
    )


def test_a_folder_of_programs_has_to_be_readable() -> None:
    shell = load_agent("coder", {"shell.path": ["/opt/no-such/bin"]}).shell
    with pytest.raises(sandbox.SandboxUnavailable, match=r"shell\.path names: name the folder"):
        sandbox.check_sandbox(shell)


@pytest.mark.parametrize(
    ("details", "why"),
    [
        ({"form": "groups", "tests": {"unit": "pytest"}}, "the form features has tests"),
        ({"proof": {"unit": ["run_command"]}}, "run_command proves nothing by itself"),
        ({"tests": {"unit": {"command": "x", "report": "../a.xml"}}}, "report"),
    ],
)
def test_a_start_that_could_prove_nothing_is_refused(details: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        ProjectStart.model_validate({"form": "features", "instructions": "x", **details})
