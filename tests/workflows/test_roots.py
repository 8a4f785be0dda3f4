"""Workers on different workspaces roots: a project's jobs run where the project is."""

from pathlib import Path

from temporalio.client import Client

from activities.checkpoints import Root
from tests.workflows.serving import serving
from tests.workflows.short import Call
from tests.workflows.team import Team, project, write

STAGES = [{"agent": "generalist", "task": task} for task in ("Draft it.", "Check it.")]


def ask() -> Call:
    return ("request_clarification", {"question": "Green or black?", "default": "green"})


async def test_a_job_waits_for_a_worker_on_the_root_of_its_project(
    temporal: Client, root: Root, tmp_path: Path
) -> None:
    elsewhere = Root.open(tmp_path / "elsewhere", create=True)
    team = Team(
        {
            "Draft it": lambda told: [ask(), write("repo/menu.md", "tea\n")],
            "Check it": lambda told: [write("repo/checked.md", "fine\n")],
        }
    )
    start = project("pipeline", stages=STAGES)
    async with serving(temporal, root, team, queue="roots") as jobs:
        handle = await jobs.start(start, kind="Project", job_id="roots")
        await jobs.until(handle, waiting_for="clarification")
    # The first job's remaining steps and the second job meet a worker on another root.
    async with serving(temporal, elsewhere, team, queue="roots") as astray:
        await handle.signal("answer", {"text": "black"})
        first = temporal.get_workflow_handle("roots.stage-1-generalist-1")
        other = await astray.start(
            {
                "agent": "generalist",
                "instructions": "x",
                "project": {
                    "id": "roots",
                    "root": root.id,
                    "folder": "repo",
                    "summary_tokens": 100,
                    "handoff": {
                        "id": "draft-1",
                        "from_agent": "project",
                        "to_agent": "generalist",
                        "task": "Draft it.",
                        "inputs": {"commit": "0" * 40},
                    },
                },
            }
        )
        status = await astray.until(first, waiting_for="storage")
        for part in (str(elsewhere.path), elsewhere.id, "LONGHAUL_WORKSPACES"):
            assert part in status["waiting"]["message"]
        status = await astray.until(other, waiting_for="storage")
        assert root.id in status["waiting"]["message"]
        assert "Start a worker on that root" in status["waiting"]["remedy"]
        await other.terminate()
        assert not list((elsewhere.path / ".longhaul" / "checkpoints").iterdir())
    async with serving(temporal, root, team, queue="roots") as jobs:
        await first.signal("resume", {})
        result = await jobs.result(handle)
        assert (result["status"], result["jobs"]) == ("completed", 2), result
