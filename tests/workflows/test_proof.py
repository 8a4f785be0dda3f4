"""Proof end to end: failing work goes back to its coder before a tester is paid for."""

from collections.abc import Sequence

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from protocol.project_outline import project_unit_story
from protocol.status import ProjectUnit
from tests.activities.projects.proving import GOOD, UNITTEST, WHY
from tests.workflows.serving import serving
from tests.workflows.short import Call
from tests.workflows.team import Team, answer, project, write
from tests.workflows.test_features import verdict

pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
BUG = "def brew(cups):\n    return 2\n"
MORE = (
    "import unittest\n\nimport tea\n\n\nclass More(unittest.TestCase):\n"
    "    def test_none(self):\n        self.assertEqual(tea.brew(0), 0)\n"
)


def listed(command: str) -> Call:
    one = {"id": "brew", "description": "Brews.", "checks": ["unit"], "tests": {"unit": command}}
    return answer("output/features.json", {"features": [one]})


async def test_a_feature_is_proved_at_each_handing_over(temporal: Client, root: Root) -> None:
    def set_up(opening: str) -> Sequence[Call]:
        # A command that proves nothing is refused before any work relies on it.
        return [listed(f"cd repo && {UNITTEST}" if "leave out ||" in opening else "pytest || true")]

    def code(opening: str) -> Sequence[Call]:
        product = GOOD if "exit code 1" in opening else {**GOOD, "tea.py": BUG}
        return [write(f"repo/{path}", text) for path, text in product.items()]

    team = Team(
        {
            # The tester reads what its coder was refused.
            "Test the feature brew": lambda told: [
                write("repo/tests/test_more.py", MORE),
                write("repo/scratch.py", "of the tester"),
                verdict(),
            ],
            "leave out ||": set_up,
            "Set the project up": set_up,
            "The system ran `": code,
            "Make the feature brew": code,
        },
        summary="Brewed it. Two cups for each.",
    )
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(project("features"), kind="Project", job_id="proved")
        result = await jobs.result(handle)
        coder = await temporal.get_workflow_handle("proved.brew-coder-1").query("status")
    assert result["status"] == "completed", result
    [unit] = result["units"]
    assert (unit["status"], unit["tested"], unit["attempts"]) == ("completed", True, 1)
    assert coder["guards"]["refused"] == {"proof": 1}
    assert [each["outcome"] for each in unit["history"]] == ["accepted", "accepted"]
    # Its first claim was false, and the project says so.
    [disproved] = unit["history"][0]["disproved"]
    assert "exit code 1" in disproved
    assert "disproved" not in unit["history"][1]
    story = project_unit_story(ProjectUnit.model_validate(unit))
    assert story[1] == "  said: Brewed it. Two cups for each."
    assert story[2].startswith("  - it said that it was done, and proof refused: ")
    [run] = unit["evidence"]
    assert (run["ran"], run["tests"], run["exit_code"]) == (UNITTEST, 3, 0)
    assert run["asked_by"] == "brew-tester-1"
    repository = ProjectRepository(project_repository_path(root, "proved"))
    # The tester's own test is merged, and nothing else from its copy.
    assert repository.read_file(result["commit"], "tests/test_more.py") == MORE.encode()
    assert repository.read_file(result["commit"], "scratch.py") is None
    # One commit for each piece of work; the job that only writes a list makes none.
    story = [each.message for each in repository.git.walk(result["commit"])]
    assert [line.partition("\n")[0] for line in story] == ["Brews", "Begin: Make a tea room."]
    assert story[0].endswith(
        "Job: proved.brew-coder-1\nFeature: brew\nTested-by: proved.brew-tester-1\n"
        f"Evidence: unit: {UNITTEST}: exit code 0, 3 tests\n"
    )


async def test_a_coder_that_gives_up_ends_and_the_project_goes_on(
    temporal: Client, root: Root
) -> None:
    """No person has to act on it at once, and no second attempt is paid."""
    said = "unit: brewing for one cup gives two, and I cannot see why"
    bad = {**GOOD, "tea.py": BUG}
    team = Team(
        {
            "Set the project up": lambda told: [listed(UNITTEST)],
            "Make the feature brew": lambda told: [
                write(f"repo/{path}", text) for path, text in bad.items()
            ],
        },
        unresolved=[said],
    )
    async with serving(temporal, root, team) as jobs:
        handle = await jobs.start(project("features", attempts=2), kind="Project")
        result = await jobs.result(handle)
    assert result["status"] == "completed", result
    [unit] = result["units"]
    assert (unit["status"], unit["tested"], unit["attempts"]) == ("blocked", False, 1)
    assert unit["reasons"][0] == said
    assert "exit code 1" in unit["reasons"][1]
    assert "FAILED (failures=1)" in unit["reasons"][1]
    [run] = unit["evidence"]
    assert (run["passed"], run["failed"]) == (False, 1)
    assert "starter.py fork" in unit["unblock"]
