"""Documents staged on one host and taken in on another, by way of a remote."""

from pathlib import Path

import pytest

from activities.checkpoints import RemoteUnavailable, Root
from activities.job.input_documents import read_input_documents
from cli.output import UserError
from cli.start.document_staging import stage_documents
from config.schema.agent import ConfigError

LIMIT = 1_000_000


def test_a_staged_document_is_taken_in_on_a_host_that_never_had_it(
    tmp_path: Path, address: str
) -> None:
    document = tmp_path / "tea leaves.md"
    document.write_text("# Tea\n\nGreen.\n")
    local_root = Root.open(tmp_path / "here", create=True)
    other_root = Root.open(tmp_path / "there", create=True)
    for _ in range(2):
        staged = stage_documents([str(document)], local_root.path, LIMIT, address)
    [read] = read_input_documents(other_root, staged, LIMIT, remote=address)
    assert (read.name, read.data) == ("tea leaves.md", document.read_bytes())
    # Now it is on this host.
    assert read_input_documents(other_root, staged, LIMIT)


def test_one_that_nobody_staged_is_refused(tmp_path: Path, address: str) -> None:
    other_root = Root.open(tmp_path / "there", create=True)
    with pytest.raises(ConfigError, match="not below the worker's workspaces root"):
        read_input_documents(other_root, ["staged:0123/none.md"], LIMIT, remote=address)


def test_a_remote_that_is_away_is_named(tmp_path: Path) -> None:
    document = tmp_path / "tea.md"
    document.write_text("tea\n")
    local_root = Root.open(tmp_path / "here", create=True)
    away = f"file://{tmp_path}/away.git"
    with pytest.raises(UserError, match=r"tea\.md: cannot be put into the remote"):
        stage_documents([str(document)], local_root.path, LIMIT, away)
    with pytest.raises(RemoteUnavailable):
        read_input_documents(local_root, ["staged:0123/none.md"], LIMIT, remote=away)
