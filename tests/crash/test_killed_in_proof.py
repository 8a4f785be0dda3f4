"""`kill -9` of the worker while the system runs a feature's tests: they are run again."""

import asyncio
import json
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.commands import sandbox
from activities.projects.project_repository import ProjectRepository, project_repository_path
from rehearsal import Answer, Request
from rehearsal.server import ModelServer
from tests.activities.mcp.serving import until
from tests.crash.begun import Begun, Place
from tests.workflows.short import Call
from tests.workflows.team import Team, answer, project, write

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
BEGUN = "*/*/workspace/repo/begun"
"""A file in the private folder of whoever runs the tests."""
SLOW = """\
import pathlib
import time
import unittest


class Tea(unittest.TestCase):
    def test_tea(self):
        pathlib.Path("begun").touch()
        while not pathlib.Path("let_go").exists():
            time.sleep(0.1)
"""
"""A test that does not end by itself."""
VERDICT = {"health": "ok", "checks": [{"check": "unit", "passed": True}], "passed": True}
FEATURES = {
    "features": [
        {
            "id": "brew",
            "description": "Brews tea.",
            "checks": ["unit"],
            "tests": {"unit": "python3 -m unittest tests.test_tea"},
        }
    ]
}


async def test_a_run_that_is_killed_leaves_nothing_and_is_repeated(begun: Begun) -> None:
    await begun(trial)


async def trial(place: Place) -> None:
    def code(opening: str) -> Sequence[Call]:
        return [write("repo/tests/__init__.py", ""), write("repo/tests/test_tea.py", SLOW)]

    team = Team(
        {
            "Set the project up": lambda told: [answer("output/features.json", FEATURES)],
            "Make the feature brew": code,
            "Test the feature brew": lambda told: [answer("output/verdict.json", VERDICT)],
        }
    )
    prompts: list[str] = []

    def answers(request: Request) -> Answer:
        prompts.append(json.dumps(request["messages"]))
        return team(request)

    root = Root.open(place.folder / "root", create=True)
    private = root.path / ".longhaul" / "private"
    with ModelServer(answers) as model:
        where = (place.temporal.address, root.path, "proof", model.base_url)
        client = await place.temporal.client()
        over = threading.Event()
        letting_go = None
        try:
            # In the coder's own gate, and again for the tester's verdict.
            worker = place.workers.worker(*where)
            handle = await client.start_workflow(
                "Project",
                project("features"),
                id="proof",
                task_queue="proof",
                result_type=dict,
            )
            await asyncio.to_thread(until, lambda: list(private.glob(BEGUN)), 60)
            worker.kill()
            await asyncio.to_thread(worker.until_gone)
            letting_go = asyncio.create_task(asyncio.to_thread(let_go, private, over))
            place.workers.worker(*where)
            result = await asyncio.wait_for(handle.result(), 120)
        finally:
            over.set()
            if letting_go:
                await letting_go
    assert result["status"] == "completed", result
    [unit] = result["units"]
    assert (unit["tested"], unit["attempts"]) == (True, 1)
    [run] = unit["evidence"]
    assert (run["tests"], run["exit_code"], run["asked_by"]) == (1, 0, "brew-tester-1")
    # Nothing was refused, and no reply was paid for twice.
    assert result["jobs"] == 3
    assert len(set(prompts)) == len(prompts) == result["usage"]["model_calls"]
    repository = ProjectRepository(project_repository_path(root, "proof"))
    assert repository.changed_paths(
        str(repository.git.revparse_single("main~1").id), result["commit"]
    ) == [
        "tests/__init__.py",
        "tests/test_tea.py",
    ]
    assert list(private.glob("*/*/workspace")) == []


def let_go(private: Path, over: threading.Event) -> None:
    """Let every test end that runs from now on."""
    while not over.wait(0.05):
        # A killed attempt's files may disappear during this.
        with suppress(OSError):
            for begun in private.glob(BEGUN):
                begun.with_name("let_go").touch()
