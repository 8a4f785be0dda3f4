"""`files` and `log` of a project: its product, and its own files next to it."""

import itertools
import json
import subprocess

import pytest

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path

AT = 1_700_000_000
numbers = itertools.count(1)


@pytest.fixture
def tearoom(engine, workspaces):
    """Return a project with two accepted pieces of work."""
    root, name = Root.open(workspaces, create=True), f"tearoom-{next(numbers)}"
    project = ProjectRepository.create(project_repository_path(root, name))
    nothing = str(project.git.TreeBuilder().write())
    first = project.commit(nothing, [], "Begin: Tea", AT)
    menu = project.with_files(nothing, {"menu.md": b"tea\n"})
    second = project.commit(menu, [first], "Offer tea\n\nJob: tearoom.brew-coder-1\n", AT)
    project.set_branch("main", second)
    state = project.with_files(nothing, {"feature-list.json": b"{}\n"})
    project.set_branch("state", project.commit(state, [], "state", AT))
    return engine.job(name, project=True)


def test_the_product_and_the_projects_own_files_are_listed_and_printed(tearoom, starter):
    assert starter("files", tearoom).out.split() == ["4", "menu.md"]
    assert starter("files", tearoom, "menu.md").out == "tea\n"
    assert starter("files", tearoom, "--state").out.split() == ["3", "feature-list.json"]
    file_data = json.loads(starter("files", tearoom, "feature-list.json", "--state", "--json").out)
    assert file_data["content"] == "{}\n"
    assert starter("files", tearoom, "none.md").error == "there is no none.md in the project"
    assert "which has no phases" in starter("files", tearoom, "--at", "2").error


def test_its_story_is_a_line_for_each_accepted_piece_of_work(tearoom, starter):
    lines = starter("log", tearoom).out.splitlines()
    assert [line.partition(":")[2].split("  ")[1] for line in lines] == ["Begin: Tea", "Offer tea"]
    entries = json.loads(starter("log", tearoom, "--json").out)
    assert entries[1]["message"].endswith("Job: tearoom.brew-coder-1")


def test_what_only_jobs_have_is_said(tearoom, engine, starter):
    assert (
        "is a project, whose files are a git repository"
        in starter("diff", tearoom, "1", "now").error
    )
    assert "--state is for projects" in starter("files", engine.job("alone"), "--state").error
    bare = engine.job("bare-project", project=True)
    assert "There is no project repository" in starter("log", bare).error


def test_the_doctor_tries_what_a_project_needs(offline, tmp_path):
    file = tmp_path / "tea.yaml"
    file.write_text("form: features\ninstructions: Tea.\nneeds: [no-such-runner --version]\n")
    output = offline("doctor", str(file), "--json").out
    [check] = [one for one in json.loads(output) if one["name"] == "needs of the project"]
    assert not check["ok"]
    assert "The project needs `no-such-runner --version`" in check["found"]
    file.write_text("form: features\ninstructions: Tea.\nneeds: [test -d .]\n")
    assert "✓ needs of the project: test -d ." in offline("doctor", str(file)).out
    file.write_text(f"{file.read_text()}set: {{shell.environment: {{TOKEN: NO_SUCH_VARIABLE}}}}\n")
    lacking = offline("doctor", str(file)).out
    assert "✗ needs of the project: " in lacking
    assert "from the worker's variable NO_SUCH_VARIABLE, which is not set" in lacking
    assert "no such file" in offline("doctor", str(tmp_path / "none.yaml")).out


def test_the_doctor_tries_the_remote_that_a_project_sets(offline, tmp_path):
    file, remote = tmp_path / "tea.yaml", tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    start = "form: features\ninstructions: Tea.\n"
    file.write_text(start)
    assert "✓ remote of the project: none" in offline("doctor", str(file)).out
    file.write_text(f"{start}set: {{workspace.remote: 'file://{remote}'}}\n")
    assert f"✓ remote of the project: file://{remote}" in offline("doctor", str(file)).out
    file.write_text(f"{start}set: {{workspace.remote: 'file://{remote}-gone'}}\n")
    assert f"✗ remote of the project: file://{remote}-gone" in offline("doctor", str(file)).out
