"""Who may write what, whatever tool and whatever way is tried."""

from pathlib import Path

import pytest

from tests.activities.standing import Standing


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path)


@pytest.fixture
def tactical(tmp_path: Path) -> Standing:
    return Standing.begin(tmp_path, kind="tactical")


OWNED = ["archive/phase_001.md", "tools/read_file.md", "errors/x.md", "workspace_summary.md"]
OWNED += ["workspace_summary.md/x", "output/completion.json", "citations/CIT-0001.json"]
OWNED += ["instructions.md", "documents/a.pdf", "documents/sub/a.pdf"]


@pytest.mark.parametrize("path", OWNED)
def test_nobody_writes_what_the_system_owns(job: Standing, path: str) -> None:
    job.call("write_file", path="mine.md", content="x")
    files = job.open().files
    assert job.call("write_file", path=path, content="x").startswith("Error: ")
    assert job.call("append_file", path=path, content="x").startswith("Error: ")
    assert job.call("move_file", old="mine.md", new=path).startswith("Error: ")
    assert job.open().files == files


def test_not_by_way_of_a_parent_folder_or_a_link_either(job: Standing) -> None:
    job.write("archive/phase_001.md", "kept")
    job.write("documents/a.txt", "input")
    job.put(lambda files: files.link("door", "archive").link("one.md", "instructions.md"))
    files = job.open().files
    for name, arguments in (
        ("delete_file", {"path": "archive"}),
        ("delete_file", {"path": "documents"}),
        ("delete_file", {"path": "instructions.md"}),
        ("move_file", {"old": "archive", "new": "mine"}),
        ("move_file", {"old": "documents/a.txt", "new": "mine"}),
        ("write_file", {"path": "door/phase_001.md", "content": "x"}),
        ("write_file", {"path": "one.md", "content": "x"}),
        ("edit_file", {"path": "door/phase_001.md", "old": "kept", "new": "x"}),
        ("delete_file", {"path": "door/phase_001.md"}),
    ):
        result = job.call(name, **arguments)
        assert "kept by the system" in result or "input of the job" in result
    assert job.open().files == files


def test_no_file_takes_the_place_of_a_folder_the_system_needs(job: Standing) -> None:
    job.call("delete_file", path="output")
    assert "Give the file another name" in job.call("write_file", path="output", content="x")


def test_links_that_lead_out_are_refused(job: Standing) -> None:
    job.put(lambda files: files.link("out", "../../etc").link("abs", "/etc/passwd"))
    assert "leads out of the workspace" in job.call("read_file", path="out/passwd")
    assert "leads out of the workspace" in job.call("write_file", path="abs", content="x")


@pytest.mark.parametrize("path", ["plan.md", "todos.yaml", "plan.md/x"])
def test_the_plan_is_written_in_strategic_phases_only(tactical: Standing, path: str) -> None:
    assert "strategic phases only" in tactical.call("write_file", path=path, content="x")


def test_the_plan_may_be_written_where_it_is_made(job: Standing) -> None:
    assert job.call("write_file", path="plan.md", content="x").startswith("Wrote")


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", "repo/.git/config", "repo/.Git/x"])
def test_what_git_runs_is_written_by_git_alone(job: Standing, path: str) -> None:
    job.write("repo/.git/HEAD", "ref")
    job.write("mine/hooks/pre-commit", "x")
    job.put(lambda files: files.link("door", "repo/.git"))
    files = job.open().files
    for name, arguments in (
        ("write_file", {"path": path, "content": "x"}),
        ("append_file", {"path": path, "content": "x"}),
        ("move_file", {"old": "mine/hooks/pre-commit", "new": path}),
        ("move_file", {"old": "mine", "new": "notes/.git"}),
        ("write_file", {"path": "door/config", "content": "x"}),
    ):
        assert "git's own" in job.call(name, **arguments)
    assert job.open().files == files
    assert job.call("read_file", path="repo/.git/HEAD").endswith("1\tref")
    job.call("write_file", path="repo/.gitignore", content="x")
    job.call("delete_file", path="repo")
    assert "repo/.git/HEAD" not in job.paths()
