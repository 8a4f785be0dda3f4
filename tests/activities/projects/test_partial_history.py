"""A history that was fetched in part, between hosts that share nothing but a remote."""

import shutil
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.checkpoints.remote import open_remote
from activities.projects.project_remote import (
    open_remote_project,
    project_remote_area,
    push_project,
    push_start_to_project_remote,
)
from activities.projects.project_repository import MAIN, ProjectRepository, project_repository_path
from activities.source_repository.repository_fetch import fetch_pinned_repository
from protocol.repository_start import RepositoryStart
from tests.activities.source_repository.origins import BOUNDS, WorkTree, git

OWNER = "tea"


@pytest.fixture
def other(tmp_path: Path) -> Root:
    return Root.open(tmp_path / "other", create=True)


@pytest.fixture
def base(root: Root, tmp_path: Path) -> str:
    """A commit with one parent that is not fetched and a merge behind it, on the first host."""
    tree = WorkTree.create(tmp_path / "source")
    tree.commit("Two", {"two.md": "two\n"})
    tree.git("switch", "-q", "-c", "side")
    tree.commit("Side", {"side.md": "side\n"})
    tree.git("switch", "-q", "trunk")
    tree.commit("Three", {"three.md": "three\n"})
    tree.git("merge", "-q", "-m", "Both", "side")
    commit = tree.commit("Four", {"four.md": "four\n"})
    fetch_pinned_repository(root, OWNER, RepositoryStart(url=tree.url, depth=3), BOUNDS)
    shutil.rmtree(tree.path)
    return commit


def add_commit(repository: ProjectRepository, parent: str, name: str) -> str:
    files: dict[str, bytes | None] = {name: b"tea\n"}
    tree = repository.with_files(repository.tree_id(parent), files)
    commit = repository.commit(tree, [parent], f"Add {name}", 1)
    repository.set_branch(MAIN, commit)
    return commit


def history(root: Root, commit: str) -> list[str]:
    return git(project_repository_path(root, OWNER), "log", "--format=%H %P", commit).split("\n")


def open_here(root: Root) -> ProjectRepository:
    return ProjectRepository(project_repository_path(root, OWNER))


def test_a_partial_history_is_the_same_on_another_host(
    root: Root, other: Root, base: str, address: str
) -> None:
    push_start_to_project_remote(open_here(root), OWNER, address)
    remote_project = open_remote_project(other, OWNER, address, base)
    assert remote_project.origin == open_here(root).origin
    assert history(other, base) == history(root, base)
    assert len(history(other, base)) > 3
    git(remote_project.path, "fsck", "--full", "--strict")
    assert remote_project.git.is_shallow


def test_work_on_a_partial_history_goes_from_host_to_host(
    root: Root, other: Root, base: str, address: str, tmp_path: Path
) -> None:
    push_start_to_project_remote(open_here(root), OWNER, address)
    heads = [base]
    hosts = [root, other, Root.open(tmp_path / "third", create=True), root, other]
    for number, host in enumerate(hosts):
        repository = open_remote_project(host, OWNER, address, heads[-1])
        heads.append(add_commit(repository, heads[-1], f"{number}.md"))
        push_project(repository, OWNER, address)
    open_remote_project(root, OWNER, address, heads[-1])
    log = history(root, heads[-1])
    assert [line.partition(" ")[0] for line in log[: len(hosts)]] == heads[:0:-1]
    assert log[len(hosts) :] == history(root, base)
    git(open_here(root).path, "fsck", "--full", "--strict")


def test_a_push_that_is_repeated_changes_nothing(
    root: Root, base: str, address: str, tmp_path: Path
) -> None:
    for _ in range(2):
        push_start_to_project_remote(open_here(root), OWNER, address)
    third = ProjectRepository.create(tmp_path / "third.git")
    refs, _ = open_remote(address).fetch_packs(project_remote_area(OWNER), third.path)
    carrier = refs[f"carried/{MAIN}"]
    assert f"heads/{MAIN}" not in refs
    assert open_here(root).get_commit(carrier).parent_ids == []
