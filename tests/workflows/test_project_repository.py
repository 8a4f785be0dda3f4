"""A project on a repository: it starts from a commit there and ends as a branch of it."""

from pathlib import Path
from typing import Any

import pytest
from temporalio.client import Client

from activities.checkpoints import Root
from activities.commands import sandbox
from activities.projects.project_repository import ProjectRepository, project_repository_path
from tests.activities.source_repository.origins import WorkTree, bare_clone, git
from tests.workflows.queries import query_status
from tests.workflows.serving import serving
from tests.workflows.team import Team, answer, project, write

STAGES = [
    {"id": "draft", "agent": "generalist", "task": "Draft the menu."},
    {"id": "check", "agent": "generalist", "task": "Check the menu."},
]


@pytest.fixture
def tree(tmp_path: Path) -> WorkTree:
    tree = WorkTree.create(tmp_path / "tea", _gitignore="*.log\n", cups__one_txt="one\n")
    cup = WorkTree.create(tmp_path / "cup")
    tree.git("submodule", "--quiet", "add", cup.url, "cups/vendor")
    tree.commit("Guidance", {"AGENTS.md": "Pour gently.\n"})
    return tree


@pytest.fixture
def remote(tree: WorkTree, tmp_path: Path) -> Path:
    return bare_clone(tree, tmp_path / "remote.git")


def team() -> Team:
    return Team(
        {
            "Draft the menu": lambda instructions: [
                write("repo/cups/menu.md", "tea\n"),
                write("repo/a.log", "x"),
                write("repo/AGENTS.md", "Pour gently.\nSpill nothing.\n"),
            ],
            "Check the menu": lambda instructions: [write("repo/checked.md", "fine\n")],
        },
        summary="Wrote what was missing.",
    )


def start(remote: Path, **details: Any) -> dict[str, Any]:
    return project("pipeline", stages=STAGES, repository={"url": f"file://{remote}"}, **details)


async def test_its_jobs_work_upon_the_commit_and_the_branch_keeps_what_they_never_saw(
    temporal: Client, root: Root, tree: WorkTree, remote: Path
) -> None:
    model = team()
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(start(remote, publish={"branch": "menu"}), kind="Project")
        result = await jobs.result(handle)
        notices = (await query_status(handle))["notices"]
    assert result["status"] == "completed", result
    assert result["branch"]["published"] == f"file://{remote}"
    assert git(remote, "rev-parse", "menu").strip() == result["commit"]
    assert git(remote, "rev-parse", "menu~2").strip() == tree.head
    changed = git(remote, "diff", "--name-status", tree.head, "menu").split()
    # The submodule beside it stays, and the repository ignores logs.
    assert changed == ["M", "AGENTS.md", "A", "checked.md", "A", "cups/menu.md"]
    assert "Wrote what was missing" in git(remote, "log", "-1", "--format=%B", "menu")
    for opening, more in zip(model.asked, ("", "Spill nothing.\n"), strict=True):
        assert f"<agents-md>\n## AGENTS.md\n\nPour gently.\n{more}</agents-md>" in opening
        assert "repo/ holds the files of the project, which began as those of" in opening
    assert any("Submodules are not fetched" in notice for notice in notices)
    repository = ProjectRepository(project_repository_path(root, handle.id))
    state = str(repository.git.references["refs/heads/state"].target)
    assert b"Subject: [PATCH 1/2] Draft the menu" in (
        repository.read_file(state, "changes.patch") or b""
    )


async def test_a_person_is_asked_before_its_branch_is_pushed(
    temporal: Client, root: Root, remote: Path
) -> None:
    publish = {"branch": "menu", "approve": True}
    async with serving(temporal, root, team()) as jobs:
        handle = await jobs.start(start(remote, publish=publish), kind="Project")
        status = await jobs.until(handle, waiting_for="approval")
        assert "pushed as branch menu" in status["waiting"]["message"]
        assert status["origin"]["source"] == f"file://{remote}"
        assert "menu" not in git(remote, "branch")
        await handle.signal("approve", {"id": "12345678"})
        await jobs.until(handle, notices=lambda lines: any("12345678" in line for line in lines))
        request = status["waiting"]["about"]["id"]
        await handle.signal("approve", {"id": request, "by": "ada"})
        result = await jobs.result(handle)
    assert git(remote, "rev-parse", "menu").strip() == result["commit"]


async def test_a_person_who_denies_keeps_it_from_being_pushed(
    temporal: Client, root: Root, remote: Path
) -> None:
    publish = {"branch": "menu", "approve": True}
    async with serving(temporal, root, team()) as jobs:
        handle = await jobs.start(start(remote, publish=publish), kind="Project")
        await jobs.until(handle, waiting_for="approval")
        await handle.signal("deny", {"reason": "Not now."})
        result = await jobs.result(handle)
    assert (result["status"], result["branch"]) == ("completed", None)
    assert "menu" not in git(remote, "branch")


WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
TEST = "import unittest\n\n\nclass Tea(unittest.TestCase):\n    def test_tea(self):\n        pass\n"
FEATURES = {"features": [{"id": "brew", "description": "Brews tea.", "checks": ["unit"]}]}
CHECKED = [{"check": "unit", "passed": True}]


@pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")
async def test_a_feature_that_is_sent_back_is_mended_upon_the_repository(
    temporal: Client, root: Root, tree: WorkTree
) -> None:
    verdicts: list[dict[str, Any]] = [
        {"passed": False, "findings": ["It is too weak."]},
        {"passed": True},
    ]

    def judge(instructions: str) -> list[Any]:
        verdict = {"health": "ok", "checks": CHECKED, **verdicts.pop(0)}
        return [answer("output/verdict.json", verdict)]

    def code(instructions: str) -> list[Any]:
        strength = "2" if "too weak" in instructions else "1"
        return [
            write("repo/tests/__init__.py", ""),
            write("repo/tests/test_tea.py", TEST),
            write("repo/strength.txt", strength),
        ]

    model = Team(
        {
            "Set the project up": lambda instructions: [answer("output/features.json", FEATURES)],
            "Make the feature brew": code,
            "Test the feature brew": judge,
            "too weak": code,
        }
    )
    begin = project(
        "features",
        repository={"url": tree.url},
        tests={"unit": "python3 -m unittest discover -s tests -t ."},
    )
    async with serving(temporal, root, model) as jobs:
        handle = await jobs.start(begin, kind="Project")
        result = await jobs.result(handle)
    assert result["status"] == "completed", result
    [unit] = result["units"]
    assert (unit["tested"], unit["attempts"]) == (True, 2)
    repository = ProjectRepository(project_repository_path(root, handle.id))
    changed = repository.changed_paths(tree.head, result["commit"])
    assert changed == ["strength.txt", "tests/__init__.py", "tests/test_tea.py"]
    assert repository.read_file(result["commit"], "strength.txt") == b"2"
