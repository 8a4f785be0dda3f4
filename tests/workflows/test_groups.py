"""Parallel groups end to end: a manager divides, groups work at once, the manager looks again."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.client import Client

from activities.checkpoints import Root
from activities.projects.repository import Repository, repository_path
from tests.workflows.serving import serving
from tests.workflows.short import Call
from tests.workflows.team import Team, answer, project, write

ITEMS = ["green tea", "black tea", "cups"]
GROUPS = "output/groups.json"
COMPLETE = {"groups": [], "complete": True}


def group(name: str, *items: str, **more: object) -> dict[str, object]:
    return {"id": name, "title": f"The {name}", "items": list(items), **more}


async def test_a_conflict_goes_back_to_the_groups_agent_and_the_manager_runs_after_each_wave(
    temporal: Client, root: Root
) -> None:
    division = {
        "groups": [
            group("green", "S1"),
            group("black", "S2"),
            group("cups", "S3", after=["green", "black"]),
        ]
    }

    def compare(told: str) -> Sequence[Call]:
        return [answer(GROUPS, COMPLETE if "cups (completed)" in told else {"groups": []})]

    def black(told: str) -> Sequence[Call]:
        text = "green\nblack\n" if "collides" in told else "black\n"
        return [write("repo/menu.md", text)]

    def green(told: str) -> Sequence[Call]:
        text = "green\nblack\n" if "collides" in told else "green\n"
        return [write("repo/menu.md", text)]

    team = Team(
        {
            "Divide the project's scope": lambda told: [answer(GROUPS, division)],
            "A wave of groups is through": compare,
            "the group green": green,
            "the group black": black,
            "the group cups": lambda told: [write("repo/cups.md", "cups\n")],
        }
    )
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(project("groups", items=ITEMS), kind="Project")
        result = await jobs.result(handle)
        assert result["status"] == "completed", result
        units = {unit["id"]: unit for unit in result["units"]}
        assert {unit["status"] for unit in units.values()} == {"completed"}
        # Whoever was second collided, and mended it in a second job.
        assert sorted(units[name]["attempts"] for name in ("green", "black")) == [1, 2]
        assert (units["cups"]["attempts"], units["cups"]["wave"]) == (1, 2)
        status = await handle.query("status")
        assert status["scope"] == {
            "original": 3,
            "completed": 3,
            "added": 0,
            "dropped": 0,
            "open": 0,
        }
        by_role = [job["job"].removeprefix(f"{handle.id}.") for job in status["jobs"]]
        assert by_role[0] == "scope-manager-1"
        assert by_role[-1] == "scope-manager-3"
        held = Repository(repository_path(root, handle.id))
        assert held.file(result["commit"], "menu.md") == b"green\nblack\n"
        assert held.file(result["commit"], "cups.md") == b"cups\n"


async def test_a_manager_that_leaves_items_out_in_silence_does_not_end_the_project(
    temporal: Client, root: Root
) -> None:
    first = {"groups": [group("green", "S1")]}
    whole = {"groups": [group("green", "S1", "S2", "S3")]}

    def divide(told: str) -> Sequence[Call]:
        return [answer(GROUPS, whole if "S2, S3" in told else first)]

    def claim(told: str) -> Sequence[Call]:
        return [answer(GROUPS, {"groups": [], "complete": True})]

    team = Team(
        {
            "These items are in no group": divide,
            "Divide the project's scope": divide,
            "A wave of groups is through": claim,
            "the group green": lambda told: [write("repo/menu.md", "tea\n")],
        }
    )
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(project("groups", items=ITEMS), kind="Project")
        result = await jobs.result(handle)
        manager = temporal.get_workflow_handle(f"{handle.id}.scope-manager-1")
        status = await manager.query("status")
        assert (status["refusals"], status["rewinds"]) == (1, 1)
        [green] = result["units"]
        assert green["items"] == ["S1", "S2", "S3"]

        # One that never mends it: its own job waits for a person, and no group has begun.
        team.does["These items are in no group"] = lambda told: [answer(GROUPS, first)]
        start = project("groups", items=ITEMS, set={"limits.rewinds": 1})
        handle = await jobs.start(start, kind="Project")
        status = await jobs.until(handle, waiting_for="rewinds")
        assert (status["result"], status["units"]) == (None, [])
        assert [run["role"] for run in status["running"]] == ["manager"]
        await handle.terminate()
