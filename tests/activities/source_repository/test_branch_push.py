"""A branch is pushed once, whatever becomes of the answer, and never by force."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.source_repository.branch_push import push_branch
from activities.source_repository.repository_fetch import fetch_pinned_repository
from protocol.publishing import Publish
from protocol.repository_start import RepositoryStart
from tests.activities.source_repository.origins import BOUNDS, WorkTree, bare_clone, git
from tests.activities.standing import AT, environment
from tests.activities.wires import PASSWORD, USER, Trouble, Web, web


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    (tmp_path / "served").mkdir()
    path = bare_clone(WorkTree.create(tmp_path / "tea"), tmp_path / "served" / "tea.git")
    git(path, "config", "http.receivepack", "true")
    git(path, "config", "core.logAllRefUpdates", "true")
    return path


@pytest.fixture
def served(remote: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setenv("TEA_ACCESS", PASSWORD)
    with web(remote.parent) as served:
        yield served


@pytest.fixture
def built(root: Root, remote: Path) -> tuple[ProjectRepository, str]:
    """Return a commit on top of the fetched one."""
    origin = fetch_pinned_repository(root, "job", RepositoryStart(url=f"file://{remote}"), BOUNDS)
    repository = ProjectRepository(project_repository_path(root, "job"))
    tree = repository.with_files(repository.tree_id(origin.commit), {"new.md": b"new\n"})
    return repository, repository.commit(tree, [origin.commit], "New", AT)


def publish(served: Web) -> Publish:
    url = f"{served.url.replace('://', f'://{USER}@')}/tea.git"
    return Publish(remote=url, branch="new", token_variable="TEA_ACCESS")


def updates(remote: Path) -> int:
    return len((remote / "logs" / "refs" / "heads" / "new").read_text().splitlines())


@pytest.mark.parametrize("trouble", ["", "unanswered"])
def test_it_is_there_once_though_the_answer_is_lost(
    built: tuple[ProjectRepository, str], remote: Path, served: Web, trouble: Trouble
) -> None:
    repository, commit = built
    served.trouble = trouble
    for _ in range(2):
        assert push_branch(repository, publish(served), commit) == f"{served.url}/tea.git"
    assert git(remote, "rev-parse", "new").strip() == commit
    assert updates(remote) == 1


def test_a_remote_that_fails_is_tried_again_later(
    built: tuple[ProjectRepository, str], served: Web
) -> None:
    repository, commit = built
    served.trouble = "500"
    with pytest.raises(ApplicationError) as failed:
        environment().run(push_branch, repository, publish(served), commit)
    assert (failed.value.type, failed.value.non_retryable) == ("Dependency", False)
    assert "The branch new cannot be pushed to http://" in str(failed.value)
    assert PASSWORD not in str(failed.value)


def test_a_branch_that_the_work_is_built_on_moves_forward(
    built: tuple[ProjectRepository, str], remote: Path, served: Web
) -> None:
    repository, commit = built
    git(remote, "branch", "new", "trunk")
    push_branch(repository, publish(served), commit)
    assert git(remote, "rev-parse", "new").strip() == commit


def test_a_branch_with_other_commits_is_left_as_it_is(
    built: tuple[ProjectRepository, str], remote: Path, served: Web, tmp_path: Path
) -> None:
    repository, commit = built
    theirs = WorkTree(tmp_path / "tea").commit("Theirs", {"theirs.md": "x\n"})
    git(tmp_path / "tea", "push", "-q", str(remote), "trunk:new")
    with pytest.raises(ApplicationError) as failed:
        environment().run(push_branch, repository, publish(served), commit)
    assert (failed.value.type, failed.value.non_retryable) == ("BranchMoved", True)
    assert f"stands at {theirs[:12]}" in str(failed.value)
    assert git(remote, "rev-parse", "new").strip() == theirs
