"""A bare repository for checkpoints, and its address over each of the wires."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.stores.relational_store import RelationalStore
from tests.activities.wires import wired


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    path = tmp_path / "served" / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    return path


@pytest.fixture
def address(
    request: pytest.FixtureRequest, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Use a `file:` address unless the test is parametrised with kinds of servers."""
    with wired(getattr(request, "param", "file"), remote, monkeypatch) as url:
        yield url


@pytest.fixture
def store(root: Root, url: str) -> RelationalStore:
    """Return a store in an empty database for this test."""
    return RelationalStore(root, url)
