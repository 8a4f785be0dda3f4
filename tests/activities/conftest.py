"""A bare repository for checkpoints, and a store in each kind of database."""

from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.stores.relational_store import RelationalStore
from tests.backends import bare_repository


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return bare_repository(tmp_path)


@pytest.fixture
def store(root: Root, url: str) -> RelationalStore:
    """Return a store in an empty database for this test."""
    return RelationalStore(root, url)
