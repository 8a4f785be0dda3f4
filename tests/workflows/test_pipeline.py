"""A pipeline end to end: each agent starts with what the previous one handed over."""

import errno
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.stores.stored_traces import read_job_traces
from rehearsal import Failure
from tests.activities.guards.hooks.scripts import hook
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.team import Team, project, write

STAGES = [
    {
        "id": "draft",
        "agent": "generalist",
        "task": "Draft the menu.",
        "delivers": [{"file_exists": "repo/menu.md"}],
    },
    {
        "id": "check",
        "agent": "generalist",
        "task": "Check the menu.",
        "needs": [{"matches": {"path": "repo/menu.md", "pattern": "tea"}}],
        "delivers": [{"file_exists": "repo/checked.md"}],
    },
]


def repository(root: Root, project_id: str) -> ProjectRepository:
    return ProjectRepository(project_repository_path(root, project_id))


async def test_stages_hand_over_by_commit(temporal: Client, root: Root, tmp_path: Path) -> None:
    team = Team(
        {
            "Draft the menu": lambda told: [write("repo/menu.md", "tea\n")],
            "Check the menu": lambda told: [write("repo/checked.md", "fine\n")],
        },
        unresolved=["The kettle leaks."],
    )
    async with serving(temporal, root, team) as jobs:
        ends = tmp_path / "ends"
        told_of = f"open({str(ends)!r}, 'a').write(event['hook_event_name'] + ' ')"
        hooks = {
            each: [hook(tmp_path / f"{each}.py", told_of)] for each in ("Stop", "SubagentStop")
        }
        handle = await jobs.start(
            project("pipeline", stages=STAGES, set={"hooks": hooks, "review": "none"}),
            kind="Project",
        )
        result = await jobs.result(handle)
        assert result["status"] == "completed", result
        assert [unit["status"] for unit in result["units"]] == ["completed", "completed"]
        # The end of a project's job counts as that of a sub-agent.
        assert ends.read_text().split() == ["SubagentStop"] * 2
        assert result["jobs"] == 2
        # What its jobs left open is open when it ends.
        assert result["unresolved"] == [
            f"{handle.id}.{job}: The kettle leaks."
            for job in ("draft-generalist-1", "check-generalist-1")
        ]

        product = repository(root, handle.id)
        assert product.read_file(result["commit"], "menu.md") == b"tea\n"
        assert product.read_file(result["commit"], "checked.md") == b"fine\n"
        assert product.read_file(
            str(product.git.references["refs/heads/state"].target), "project.md"
        )
        trace_texts = [row.what_happened for row in read_job_traces(root, handle.id)]
        assert trace_texts == [
            "handoff draft-generalist-1 from project to generalist was accepted",
            "handoff check-generalist-1 from generalist to generalist was accepted",
        ]
        assert str(product.git.references["refs/heads/main"].target) == result["commit"]
        # The second job was told the first one's result, and found its file.
        assert "Did it." in team.asked[1]
        children = [f"{handle.id}.draft-generalist-1", f"{handle.id}.check-generalist-1"]
        jobs_of_it = (await query_status(handle))["jobs"]
        assert [job["job"] for job in jobs_of_it] == children
        spent = 0
        for child in children:
            ended: dict[str, Any] = await temporal.get_workflow_handle(child).result()
            spent += ended["usage"]["model_calls"]
        assert result["usage"]["model_calls"] == spent > 0

        # A person's fork of such a job does not belong to the project, and is told so.
        fork = await jobs.start(
            {"fork": {"job": children[0], "phase": 2}, "instructions": "Draft the menu anew."}
        )
        assert (await jobs.result(fork))["status"] == "completed"
        status = await query_status(fork)
        [alone] = [line for line in status["notices"] if handle.id in line]
        snapshot = jobs.snapshot(fork, status["checkpoint"])
        assert snapshot.link is None
        assert f"## Amended\n\n{alone}\n\nDraft the menu anew." in snapshot.read_text(
            "instructions.md"
        )
        assert ends.read_text().split() == ["SubagentStop"] * 2 + ["Stop"]


async def test_a_long_summary_is_shortened_once_and_clipped_where_it_cannot_be(
    temporal: Client, root: Root
) -> None:
    team = Team(
        {
            "Draft the menu": lambda told: [write("repo/menu.md", "tea\n")],
            "Check the menu": lambda told: [write("repo/checked.md", "fine\n")],
        },
        summary="The leaves were steeped. " * 700,
    )
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(project("pipeline", stages=STAGES), kind="Project")
        result = await jobs.result(handle)
        assert result["status"] == "completed", result
        status = await query_status(handle)
        # Both had the same text: it was summarized and paid for once.
        assert [job["summary"].partition("\n")[0] for job in status["jobs"]] == ["In short."] * 2
        assert team.long == 1
        assert "In short." in team.asked[1]
        assert "steeped" not in team.asked[1]
        spent = 0
        for job in status["jobs"]:
            ended: dict[str, Any] = await temporal.get_workflow_handle(job["job"]).result()
            spent += ended["usage"]["model_calls"]
        assert result["usage"]["model_calls"] == spent + 1

        alone = ended["usage"]["model_calls"]
        start = project("pipeline", stages=STAGES[:1], limits={"model_calls": alone})
        handle = await jobs.start(start, kind="Project")
        assert (await jobs.result(handle))["usage"]["model_calls"] == alone
        assert team.long == 1

        team.shortened = Failure(400, "no")
        handle = await jobs.start(project("pipeline", stages=STAGES[:1]), kind="Project")
        assert (await jobs.result(handle))["status"] == "completed"
        [job] = (await query_status(handle))["jobs"]
        assert job["summary"].startswith("The leaves were steeped. The")


async def test_a_summary_counts_also_where_the_work_is_looked_into_twice(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    team = Team(
        {"Draft the menu": lambda told: [write("repo/menu.md", "tea\n")]},
        summary="The leaves were steeped. " * 700,
    )
    async with serving(temporal, root, team) as jobs:
        with monkeypatch.context() as meanwhile:
            meanwhile.setattr(ProjectRepository, "merge", full)
            handle = await jobs.start(project("pipeline", stages=STAGES[:1]), kind="Project")
            await jobs.until(handle, waiting_for="storage")
        await handle.signal("resume", {})
        result = await jobs.result(handle)
        assert result["status"] == "completed", result
        [job] = (await query_status(handle))["jobs"]
        ended: dict[str, Any] = await temporal.get_workflow_handle(job["job"]).result()
        assert result["usage"]["model_calls"] == ended["usage"]["model_calls"] + 1
        assert team.long == 1
