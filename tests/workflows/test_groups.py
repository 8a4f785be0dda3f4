"""Parallel groups end to end: a manager divides the work, groups do it, the manager reviews."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from temporalio.client import Client, WorkflowContinuedAsNewError, WorkflowFailureError

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from cli.start.start_files import project_input
from rehearsal import rehearse
from rehearsal.request_view import RequestView
from tests.soak import soak
from tests.workflows.serving import serving
from tests.workflows.short import Call
from tests.workflows.team import Team, answer, project, write

EXAMPLE = Path(__file__).parents[2] / "examples" / "projects" / "groups.yaml"
QUICK = {
    "todos.bootstrap": ["Write plan.md.", "Hand over its phase with todo_write."],
    "todos.transition": ["Mark progress in plan.md.", "Call job_complete."],
}
"""The example's strategic phases, shortened."""
ITEMS = ["green tea", "black tea", "cups"]
GROUPS = "output/groups.json"
COMPLETE = {"groups": [], "complete": True}


def group(name: str, *items: str, **more: object) -> dict[str, object]:
    return {"id": name, "title": f"The {name}", "items": list(items), **more}


async def test_what_is_left_out_collides_or_is_shown_undone_goes_back_wave_by_wave(
    temporal: Client, root: Root
) -> None:
    first = {"groups": [group("green", "S1"), group("black", "S2")]}
    whole = {
        "groups": [
            group("green", "S1"),
            group("black", "S2"),
            group("cups", "S3", after=["green", "black"]),
        ]
    }

    def divide(opening: str) -> Sequence[Call]:
        return [answer(GROUPS, whole if "in no group: S3" in opening else first)]

    def compare(opening: str) -> Sequence[Call]:
        if "sugar.md" in opening and "sweet (completed)" not in opening:
            return [answer(GROUPS, {"groups": [group("sweet", "S1")]})]
        return [answer(GROUPS, COMPLETE if "cups (completed)" in opening else {"groups": []})]

    def black(opening: str) -> Sequence[Call]:
        text = "green\nblack\n" if "collides" in opening else "black\n"
        return [write("repo/menu.md", text)]

    def green(opening: str) -> Sequence[Call]:
        text = "green\nblack\n" if "collides" in opening else "green\n"
        return [write("repo/menu.md", text)]

    team = Team(
        {
            "These items are in no group": divide,
            "Divide the project's scope": divide,
            "A wave of groups is through": compare,
            "the group green": green,
            "the group black": black,
            "the group cups": lambda told: [write("repo/cups.md", "cups\n")],
            "the group sweet": lambda told: [write("repo/sugar.md", "sugar\n")],
        }
    )
    async with serving(temporal, root, team) as jobs:
        success = [{"file_exists": "sugar.md"}]
        start = project("groups", items=ITEMS, success=success, history_events=10)
        handle = await jobs.start(start, kind="Project")
        result = await jobs.result(handle)
        assert result["status"] == "completed", result
        units = {unit["id"]: unit for unit in result["units"]}
        assert {unit["status"] for unit in units.values()} == {"completed"}
        assert [units[name]["items"] for name in ("green", "black", "cups")] == [
            ["S1"], ["S2"], ["S3"],
        ]  # fmt: skip
        # The second of the two had a conflict, and resolved it in a second job.
        assert sorted(units[name]["attempts"] for name in ("green", "black")) == [1, 2]
        divided = temporal.get_workflow_handle(f"{handle.id}.scope-manager-1")
        # Not "Dividing the work", with which the instructions of every manager begin.
        assert (await divided.query("status"))["title"].startswith("Divide the project's scope")
        [late] = [name for name in ("green", "black") if units[name]["attempts"] == 2]
        again = temporal.get_workflow_handle(f"{handle.id}.{late}-worker-2")
        # Its first attempt had nothing wrong with it, so there is nothing to reflect on.
        second = jobs.snapshot(again, (await again.query("status"))["checkpoint"])
        assert second.files.entry("experiences.md") is None
        assert (units["cups"]["attempts"], units["cups"]["wave"]) == (1, 2)
        # What the success criteria showed as unfinished was worked on again.
        assert units["sweet"]["items"] == ["S1"]
        status = await handle.query("status")
        assert status["scope"] == {
            "original": 3,
            "completed": 3,
            "added": 0,
            "dropped": 0,
            "open": 0,
            "steps": 0,
            "steps_completed": 0,
        }
        by_role = [job["job"].removeprefix(f"{handle.id}.") for job in status["jobs"]]
        assert by_role[0] == "scope-manager-1"
        # After each wave, and once more when completion was claimed too early.
        assert by_role[-1] == "scope-manager-5"
        manager = temporal.get_workflow_handle(f"{handle.id}.scope-manager-1")
        status = await manager.query("status")
        assert (status["refusals"], status["rewinds"]) == (1, 1)
        repository = ProjectRepository(project_repository_path(root, handle.id))
        assert repository.read_file(result["commit"], "menu.md") == b"green\nblack\n"
        assert repository.read_file(result["commit"], "cups.md") == b"cups\n"
        # It continues as new with a single copy of the scope, so that a large one fits a payload.
        begun = (await handle.fetch_history()).events[0].workflow_execution_started_event_attributes
        handed = json.loads(begun.input.payloads[0].data)
        assert [item["text"] for item in handed["scope"]] == ITEMS
        assert "items" not in handed["start"]


async def test_the_largest_project_goes_on_as_new(temporal: Client, root: Root) -> None:
    """The longest instructions, a scope of 1 MB, and as many groups as a division can have."""
    large = [
        group(
            f"g{n}",
            *(f"S{20 * n + place}" for place in range(1, 21)),
            title="茶" * 300,
            task="茶" * 800,
        )
        for n in range(100)
    ]
    team = Team(
        {
            "Divide the project's scope": lambda told: [answer(GROUPS, {"groups": large})],
            "the group g": lambda told: [write("repo/menu.md", "green\n")],
        }
    )
    async with serving(temporal, root, team) as jobs:
        start = project("groups", items=["茶" * 166] * 2000, history_events=10, parallel=1)
        start["instructions"] = "\N{TEACUP WITHOUT HANDLE}" * 200_000
        handle = await jobs.start(start, kind="Project")
        status = await jobs.until(handle, wave=1)
        assert len(status["units"]) == 100
        first = temporal.get_workflow_handle(handle.id, run_id=handle.first_execution_run_id)
        async with asyncio.timeout(60):
            with pytest.raises(WorkflowContinuedAsNewError):
                await first.result(follow_runs=False)
        await handle.signal("cancel", {})
        with pytest.raises(WorkflowFailureError):
            await jobs.result(handle)


async def test_a_manager_that_leaves_items_out_to_the_last_waits_for_a_person(
    temporal: Client, root: Root
) -> None:
    first = {"groups": [group("green", "S1")]}
    team = Team(
        {
            "These items are in no group": lambda told: [answer(GROUPS, first)],
            "Divide the project's scope": lambda told: [answer(GROUPS, first)],
        }
    )
    async with serving(temporal, root, team) as jobs:
        # The manager's job waits, and no group has begun.
        start = project("groups", items=ITEMS, set={"limits.rewinds": 1})
        handle = await jobs.start(start, kind="Project")
        status = await jobs.until(handle, waiting_for="rewinds")
        assert (status["result"], status["units"]) == (None, [])
        assert [run["role"] for run in status["running"]] == ["manager"]
        await handle.terminate()


async def test_an_item_that_a_worker_drops_is_not_done_and_the_manager_decides(
    temporal: Client, root: Root
) -> None:
    def compare(opening: str) -> Sequence[Call]:
        assert "S2: black tea (left out by teas: Nobody drinks it.)" in opening
        drop = [{"id": "S2", "reason": "Out of stock."}]
        return [answer(GROUPS, {**COMPLETE, "drop": drop})]

    def teas(opening: str) -> Sequence[Call]:
        # The job numbers its own items; other ids for them would be confused with these.
        assert "- black tea\n" in opening
        return [write("repo/green.md", "green\n")]

    class Dropping(Team):
        def _calls(self, view: RequestView, verb: str) -> list[Call]:
            calls = super()._calls(view, verb)
            if verb == "Plan" and "the group teas" in view.opening:
                return [("drop_item", {"ids": ["S2"], "reason": "Nobody drinks it."}), *calls]
            return calls

    team = Dropping(
        {
            "Divide the project's scope": lambda told: [
                answer(GROUPS, {"groups": [group("teas", "S2", "S1")]})
            ],
            "A wave of groups is through": compare,
            "the group teas": teas,
        }
    )
    async with serving(temporal, root, team) as jobs:
        # Of two items one is more than a worker may drop without asking a person.
        start = project("groups", items=ITEMS[:2], set={"scope.beyond": "list"})
        result = await jobs.result(await jobs.start(start, kind="Project"))
        assert result["status"] == "completed", result
        assert result["dropped"] == ["S2: Out of stock."]


async def test_the_groups_of_the_examples_are_made_by_the_rehearsal_model(
    temporal: Client, root: Root, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(root.path))
    start_input = project_input(EXAMPLE)
    start_input["items"] = start_input["items"][: soak(2, 4)]
    start_input["set"] = QUICK
    async with serving(temporal, root, rehearse) as jobs:
        handle = await jobs.start(start_input, kind="Project")
        result = await jobs.result(handle)
    assert result["status"] == "completed", result
    assert [unit["status"] for unit in result["units"]] == ["completed"] * len(start_input["items"])
    product = ProjectRepository(project_repository_path(root, handle.id))
    for page in ("what_has_to_be_kept", "how_long_it_is_kept"):
        assert product.read_file(result["commit"], f"{page}.md")
