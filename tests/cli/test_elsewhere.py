"""Checkpoints made on another host are fetched for commands that read them."""

import subprocess
import time
from dataclasses import replace
from pathlib import Path

import pytest

from activities.checkpoints import Root, open_checkpoints
from activities.checkpoints.journal import PushStaging
from activities.checkpoints.remote import push_to_remote
from activities.projects.project_remote import push_project
from activities.projects.project_repository import ProjectRepository, project_repository_path
from cli.job_files import checkpoint_reader
from cli.job_files.checkpoint_reader import CheckpointPlaces
from cli.projects import project_files
from tests.activities.standing import JOB, Standing

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.fixture
def places(tmp_path: Path) -> CheckpointPlaces:
    """Return a job of another host, whose checkpoints are all in a remote."""
    path = tmp_path / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    standing = Standing.begin(tmp_path / "elsewhere")
    began = standing.commit
    standing.call("write_file", path="notes/a.md", content="tea\n")
    repository = standing.root.repository(JOB)
    url, moved = f"file://{path}", {"runs/run/elsewhere": standing.commit}
    push_to_remote(url, JOB, repository, PushStaging(repository).stage(), moved, {})
    return CheckpointPlaces(standing.commit, {2: began}, remote=url)


@pytest.fixture
def local_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Root:
    root = Root.open(tmp_path / "here", create=True)
    monkeypatch.setenv("LONGHAUL_WORKSPACES", str(root.path))
    return root


def test_files_of_now_and_of_a_phase_are_there(local_root: Root, places: CheckpointPlaces) -> None:
    store = checkpoint_reader.open_checkpoints_for_reading(JOB, places)
    now, then = (
        checkpoint_reader.checkpoint_commit_at(places, store, phase) for phase in (None, 2)
    )
    assert (
        checkpoint_reader.read_checkpoint_path(
            checkpoint_reader.files_at_checkpoint(store, now), "notes/a.md"
        )
        == b"tea\n"
    )
    paths = [entry.path for entry in checkpoint_reader.files_at_checkpoint(store, then).walk()]
    assert "notes/a.md" not in paths


@pytest.fixture
def project_places(tmp_path: Path) -> CheckpointPlaces:
    """Return a project whose newest work was accepted on another host."""
    remote = tmp_path / "products.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(remote)], check=True)
    url, commits = f"file://{remote}", list[str]()
    path = project_repository_path(Root.open(tmp_path / "elsewhere", create=True), "tearoom")
    repository = ProjectRepository.create(path)
    for text in (b"tea\n", b"tea, cake\n"):
        tree = repository.with_files(EMPTY_TREE, {"menu.md": text})
        commits.append(repository.commit(tree, commits[-1:], "Offer more", 1_700_000_000))
        repository.set_branch("main", commits[-1])
        push_project(repository, "tearoom", url)
    return CheckpointPlaces(None, {}, remote=url, project="", tips=(commits[-1],))


def test_a_project_has_the_work_that_other_hosts_accepted(
    local_root: Root, project_places: CheckpointPlaces, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = project_files.open_project_files("tearoom", project_places)
    tip = project_files.project_files_tip(repository, state=False)
    assert tip == project_places.tips[0]
    assert project_files.read_project_path(repository, tip, "menu.md") == b"tea, cake\n"
    later = replace(project_places, remote="file:///nowhere.git", tips=("0" * 40,))
    repository = project_files.open_project_files("tearoom", later)
    assert project_files.project_files_tip(repository, state=False) == tip
    assert "not all commits are here, and the remote" in capsys.readouterr().err


def test_what_the_remote_lacks_is_told(
    local_root: Root, places: CheckpointPlaces, capsys: pytest.CaptureFixture[str]
) -> None:
    later = CheckpointPlaces("0" * 40, places.starts, remote=places.remote)
    begun = time.monotonic()
    store = checkpoint_reader.open_checkpoints_for_reading(JOB, later)
    assert time.monotonic() - begun > checkpoint_reader.PAUSE_SECONDS
    assert "1 of 2 checkpoints are neither here nor in the remote" in capsys.readouterr().err
    assert store.has_commit(places.starts[2])


def test_what_is_here_is_shown_when_the_remote_is_away(
    local_root: Root, places: CheckpointPlaces, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint_reader.open_checkpoints_for_reading(JOB, places)
    (tmp_path / "remote.git").rename(tmp_path / "away")
    later = CheckpointPlaces("0" * 40, places.starts, remote=places.remote)
    store = checkpoint_reader.open_checkpoints_for_reading(JOB, later)
    assert "gives none" in capsys.readouterr().err
    assert checkpoint_reader.files_at_checkpoint(
        store, checkpoint_reader.checkpoint_commit_at(later, store, 2)
    )
    assert open_checkpoints(local_root, JOB).has_commit(places.starts[2])
