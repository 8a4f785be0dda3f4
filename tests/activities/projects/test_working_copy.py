"""The git of a project's working copy: read as people read theirs, and not written."""

import re
import shutil
from pathlib import Path

import pygit2
import pytest

from activities.checkpoints import Root
from activities.commands import bubblewrap, sandbox
from activities.phases import orientation
from activities.projects.handoff import prepare_handoff_workspace
from activities.projects.product_tree import handoff_product_tree
from activities.projects.project_remote import push_project
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.projects.working_copy import WorkingCopyOrigin, working_copy_git
from protocol.handoffs import Handoff, ProjectLink
from tests.activities.source_repository.origins import git
from tests.activities.standing import AT, Standing

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
if WHY is None and shutil.which("git", path=bubblewrap.PATH) is None:
    WHY = "the sandbox sees no git"
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")


@pytest.fixture
def coder(tmp_path: Path) -> Standing:
    """Return the job of a coder who was handed two accepted pieces of work."""
    standing = Standing.begin(tmp_path, kind="tactical", agent="coder")
    project = ProjectRepository.create(project_repository_path(standing.root, "tea"))
    tree = str(project.git.TreeBuilder().write())
    commits: list[str] = []
    for menu, story in ((b"tea\n", "Offer tea"), (b"tea\ncoffee\n", "Offer coffee")):
        tree = project.with_files(tree, {"menu.md": menu})
        commits.append(project.commit(tree, commits[-1:], story, AT))
    inputs = {"commit": commits[-1]}
    handoff = Handoff.model_validate(
        {"id": "brew-coder-1", "from_agent": "x", "to_agent": "coder", "task": "Brew."}
        | {"inputs": inputs}
    )
    snapshot = standing.open()
    link = ProjectLink(id="tea", folder="repo", summary_tokens=1000, handoff=handoff)
    prepare_handoff_workspace(standing.root, snapshot, link)
    standing.commit = snapshot.save("handed", AT)
    return standing


def test_status_diff_log_and_blame_can_be_read(coder: Standing) -> None:
    def git(command: str) -> str:
        return coder.call("run_command", command=f"cd repo && git {command}")

    assert git("status --porcelain") == "Exit code 0. No output."
    output = git("log --format=%s")
    assert output == "Exit code 0.\nOffer coffee\nOffer tea"
    coder.call("write_file", path="repo/menu.md", content="tea\nmilk\n")
    coder.call("write_file", path="repo/new.md", content="x\n")
    assert git("status --porcelain").splitlines()[1:] == [" M menu.md", "?? new.md"]
    assert "-coffee\n+milk" in git("diff")
    blamed = git("blame -s HEAD -- menu.md").splitlines()[1:]
    assert [line.rpartition(" ")[2] for line in blamed] == ["tea", "coffee"]
    assert blamed[0][:8] != blamed[1][:8]
    assert git("show HEAD:menu.md").endswith("tea\ncoffee")


def test_what_would_write_is_refused_and_nothing_of_it_is_in_the_workspace(coder: Standing) -> None:
    coder.call("write_file", path="repo/menu.md", content="milk\n")
    for command in ("git add -A", "git commit -am mine", "git checkout menu.md"):
        answer = coder.call("run_command", command=f"cd repo && {command}")
        assert "Read-only file system" in answer, answer
    assert coder.call("run_command", command="cd repo && git stash").startswith("Exit code 1.")
    assert coder.text("repo/menu.md") == "milk\n"
    assert ".git" not in [path.split("/")[1] for path in coder.paths() if path.startswith("repo/")]
    # A repository that the agent makes elsewhere is an ordinary one.
    answer = coder.call("run_command", command="git init -q notes/x && cd notes/x && git status -s")
    assert answer == "Exit code 0. No output."


def test_the_old_code_can_be_had_as_the_opening_of_a_job_says(coder: Standing) -> None:
    coder.call("write_file", path="repo/menu.md", content="milk\n")
    [told] = re.findall(r"`(d=[^`]*)`", orientation.TESTED)
    answer = coder.call("run_command", command=f"cd repo && {told} && cat menu.md")
    assert answer == "Exit code 0.\ntea\ncoffee"
    assert coder.text("repo/menu.md") == "milk\n"


def test_it_is_no_part_of_the_work(coder: Standing) -> None:
    coder.call("run_command", command="cd repo && git status && echo more >> menu.md")
    snapshot = coder.open()
    assert snapshot.link
    project = ProjectRepository(project_repository_path(coder.root, "tea"))
    tree = handoff_product_tree(project, snapshot, "repo", snapshot.link.handoff)
    new_commit = project.commit(tree, [snapshot.link.handoff.inputs.commit], "made", AT)
    assert project.changed_paths(snapshot.link.handoff.inputs.commit, new_commit) == ["menu.md"]


def test_unconfined_what_is_written_goes_nowhere(coder: Standing) -> None:
    config = coder.open().config.model_copy(deep=True)
    config.shell.sandbox = "none"
    link = coder.open().link
    coder.pin(config)
    snapshot = coder.open()
    snapshot.link = link
    coder.commit = snapshot.save("linked", AT)
    commit = "cd repo && git -c user.name=a -c user.email=a@b commit --allow-empty -qm mine"
    assert coder.call("run_command", command=commit).startswith("Exit code 0.")
    answer = coder.call("run_command", command="cd repo && git log --format=%s")
    assert answer == "Exit code 0.\nOffer coffee\nOffer tea"


@pytest.mark.parametrize("is_pushed", [True, False])
def test_on_another_host_the_history_comes_from_the_remote(
    coder: Standing, tmp_path: Path, *, is_pushed: bool
) -> None:
    pygit2.init_repository(str(tmp_path / "remote.git"), bare=True).free()
    remote, path = f"file://{tmp_path}/remote.git", project_repository_path(coder.root, "tea")
    before = coder.open()
    assert before.link
    if is_pushed:
        repository = ProjectRepository(path)
        repository.set_branch("main", before.link.handoff.inputs.commit)
        push_project(repository, "tea", remote)
    shutil.rmtree(path)
    config = before.config.model_copy(deep=True)
    config.workspace.remote = remote
    coder.pin(config)
    snapshot = coder.open()
    snapshot.link = before.link
    coder.commit = snapshot.save("linked", AT)
    output = coder.call("run_command", command="cd repo && cat menu.md; git log --format=%s")
    assert "tea\ncoffee" in output
    assert ("Offer coffee\nOffer tea" in output) is is_pushed


@pytest.mark.parametrize("target", ["../../outside", ".git"])
def test_a_link_in_place_of_git_is_not_followed(coder: Standing, target: str) -> None:
    answer = coder.call("run_command", command=f"rm -f repo/.git; ln -s {target} repo/.git")
    assert answer == "Exit code 0. No output."
    assert coder.call("run_command", command="readlink repo/.git").endswith(target)
    assert not list(coder.root.path.rglob("outside"))


def test_a_submodule_that_is_not_fetched_is_no_change(root: Root, tmp_path: Path) -> None:
    project = ProjectRepository.create(project_repository_path(root, "tea"))
    builder = project.git.TreeBuilder()
    builder.insert("sub", "1" * 40, pygit2.enums.FileMode.COMMIT)
    commit = project.commit(str(builder.write()), [], "Add sub", AT)
    place, workspace = WorkingCopyOrigin("tea", "repo", commit), tmp_path / "0" / "w"
    (workspace / "repo").mkdir(parents=True)
    with working_copy_git(root, place, workspace, confined=False):
        assert git(workspace / "repo", "status", "--porcelain") == ""
        assert git(workspace / "repo", "diff", "--stat") == ""
