"""Whose a repository is: its mark is believed, and one that cannot be read is no owner."""

from pathlib import Path

import pytest

from activities.checkpoints import Root, open_checkpoints
from activities.checkpoints.repository_owner import OWNER_FILE
from activities.preparation.checkpoint_ownership import claim_ownership
from config.schema.agent import ConfigError
from tests.activities.standing import JOB, environment
from tests.full_disk import files_of_at_most


@pytest.fixture
def repository(root: Root) -> Path:
    return open_checkpoints(root, JOB, create=True).path


def test_a_repository_belongs_to_one_workflow(root: Root, repository: Path) -> None:
    environment().run(claim_ownership, root, repository, "first")
    environment().run(claim_ownership, root, repository, "first")
    with pytest.raises(ConfigError, match="has already run on this workspaces root"):
        environment().run(claim_ownership, root, repository, "second")


def test_a_job_that_its_project_begins_anew_keeps_its_repository(
    root: Root, repository: Path
) -> None:
    environment().run(claim_ownership, root, repository, "first", project="tea")
    environment().run(claim_ownership, root, repository, "second", project="tea")
    for other in ("", "coffee"):
        with pytest.raises(ConfigError, match="has already run on this workspaces root"):
            environment().run(claim_ownership, root, repository, "third", project=other)


def test_a_mark_that_cannot_be_read_is_named(root: Root, repository: Path) -> None:
    (repository / OWNER_FILE).write_text("{")
    with pytest.raises(OSError, match=rf"{JOB}.*{OWNER_FILE}"):
        environment().run(claim_ownership, root, repository, "first")


def test_a_mark_that_finds_no_room_leaves_nothing(root: Root, repository: Path) -> None:
    before = sorted(repository.iterdir())
    with files_of_at_most(10), pytest.raises(OSError, match=OWNER_FILE):
        environment().run(claim_ownership, root, repository, "first")
    assert sorted(repository.iterdir()) == before
    environment().run(claim_ownership, root, repository, "first")
