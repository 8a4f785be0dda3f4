"""A store in an empty database of the test's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.stores.engine import Store


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.open(tmp_path / "root", create=True)


@pytest.fixture
def store(root: Root, url: str) -> Store:
    return Store(root, url)
