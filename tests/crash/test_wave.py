"""Groups, four at once, on two workers of one root that are killed: the result is the same.

One group cannot begin, and two write the same file. The same project also runs undisturbed, with
jobs shared by both workers.
"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from temporalio.client import Client, WorkflowHandle

from activities.checkpoints import Root, open_checkpoints
from activities.projects.project_repository import ProjectRepository, project_repository_path
from rehearsal.server import ModelServer
from tests.crash.begun import Begun
from tests.crash.begun import Place as Given
from tests.crash.processes import Worker
from tests.crash.trial import SEED
from tests.soak import soak
from tests.workflows.short import Call
from tests.workflows.team import Team, answer, project, write

GROUPS = "output/groups.json"
NAMES = [f"g{n:02d}" for n in range(1, 1 + soak(4, 12))]
COLLIDING, FAILING = ("g01", "g02"), "g03"
"""The two groups with a conflict begin together, from the same commit."""
BOTH = "green\nblack\n"
KILLS = soak(2, 4)
PATIENCE = 240


def divide(opening: str) -> Sequence[Call]:
    groups = [
        {"id": name, "title": f"Part {name}", "items": [f"S{n}"]} for n, name in enumerate(NAMES, 1)
    ]
    return [answer(GROUPS, {"groups": groups})]


def work(name: str, opening: str) -> Sequence[Call]:
    if name in COLLIDING:
        own = ["green\n", "black\n"][COLLIDING.index(name)]
        return [write("repo/menu.md", BOTH if "collides" in opening else own)]
    return [write(f"repo/{name}/a.md", f"{name}\n"), write(f"repo/{name}/b.md", f"{name}\n" * 50)]


def team() -> Team:
    does: dict[str, Any] = {
        "Divide the project's scope": divide,
        "A wave of groups is through": lambda told: [
            answer(GROUPS, {"groups": [], "complete": True})
        ],
    }
    for name in NAMES:
        does[f"the group {name} "] = lambda told, name=name: work(name, told)
    return Team(does)


@dataclass
class Place:
    """A root with two workers."""

    name: str
    given: Given
    model: str
    workers: list[Worker] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = Root.open(self.given.folder / self.name, create=True)
        for attempt in (1, 2):
            # Another job already has the id that the failing group's job would get.
            checkpoints = open_checkpoints(
                self.root, f"{self.name}.{FAILING}-worker-{attempt}", create=True
            )
            (checkpoints.path / "job.json").write_text('{"chain": "another", "job": "other"}')

    def worker(self) -> Worker:
        where = (self.given.temporal.address, self.root.path, self.name, self.model)
        new_worker = self.given.workers.worker(*where)
        self.workers.append(new_worker)
        return new_worker

    async def start(self, client: Client) -> WorkflowHandle[Any, dict[str, Any]]:
        for _ in range(2):
            self.worker()
        return await client.start_workflow(
            "Project",
            project("groups", items=[f"Part {name}" for name in NAMES]),
            id=self.name,
            task_queue=self.name,
            result_type=dict,
        )

    def work(self) -> str:
        """Return the tree of the accepted work."""
        repository = ProjectRepository(project_repository_path(self.root, self.name))
        main = str(repository.git.references["refs/heads/main"].target)
        return repository.tree_id(main)


async def test_a_wave_ends_as_an_undisturbed_one_whoever_is_killed(begun: Begun) -> None:
    await begun(trial)


async def trial(setup: Given) -> None:
    with ModelServer(team(), delay=0.1) as model:
        quiet, shaken = (
            Place(f"{name}-{SEED}", setup, model.base_url) for name in ("quiet", "shaken")
        )
        client = await setup.temporal.client()
        undisturbed = await quiet.start(client)
        disturbed = await shaken.start(client)
        async with asyncio.timeout(PATIENCE):
            await killing(shaken, random.Random(SEED))
            results = await asyncio.gather(undisturbed.result(), disturbed.result())
    for result in results:
        assert result["status"] == "completed", result
        units = {unit["id"]: unit for unit in result["units"]}
        assert sorted(units) == NAMES
        failing = units.pop(FAILING)
        assert (failing["status"], failing["attempts"]) == ("blocked", 2)
        assert "has already run" in failing["reasons"][0]
        assert {unit["status"] for unit in units.values()} == {"completed"}
        assert sorted(units[name]["attempts"] for name in COLLIDING) == [1, 2]
    assert shaken.work() == quiet.work(), f"seed {SEED}"
    repository = ProjectRepository(project_repository_path(shaken.root, shaken.name))
    assert repository.read_file(results[1]["commit"], "menu.md") == BOTH.encode()
    assert results[0]["jobs"] == results[1]["jobs"]
    assert len(await who_worked(client, quiet)) == 2


async def killing(place: Place, dice: random.Random) -> None:
    """Kill one of the two workers with `kill -9`, repeatedly, during the wave."""
    until = time.monotonic() + 120
    while not list(place.root.path.glob(f"{place.name}.g*")):
        assert time.monotonic() < until
        await asyncio.sleep(0.05)
    for _ in range(KILLS):
        await asyncio.sleep(dice.uniform(0.1, 1.5))
        place.workers.pop(dice.randrange(2)).kill()
        await place.worker().until_ready()


async def who_worked(client: Client, place: Place) -> set[str]:
    """Return the processes that did steps of the project's jobs."""
    identities: set[str] = set()
    for name in NAMES[:2] + NAMES[-2:]:
        history = await client.get_workflow_handle(f"{place.name}.{name}-worker-1").fetch_history()
        for event in history.events:
            if event.HasField("workflow_task_completed_event_attributes"):
                identities.add(event.workflow_task_completed_event_attributes.identity)
            if event.HasField("activity_task_started_event_attributes"):
                identities.add(event.activity_task_started_event_attributes.identity)
    return identities
