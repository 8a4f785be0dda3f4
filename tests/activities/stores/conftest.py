"""A store in an empty database of the test's own."""

from __future__ import annotations

import pytest

from activities.checkpoints import Root
from activities.stores.engine import Store


@pytest.fixture
def store(root: Root, url: str) -> Store:
    return Store(root, url)
