"""Checkpoints made on another host are fetched for commands that read them."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

import pytest

from activities.checkpoints import Root, open_checkpoints
from activities.checkpoints.push_staging import PushStaging
from activities.checkpoints.remote import push_to_remote
from cli.job_files import checkpoint_reader
from cli.job_files.checkpoint_reader import CheckpointPlaces
from tests.activities.standing import JOB, Standing


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
