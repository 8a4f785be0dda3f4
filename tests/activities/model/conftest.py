"""Clients of a test's own."""

import pytest

from activities.model import endpoint


@pytest.fixture(autouse=True)
def own_clients() -> None:
    """Clients are cached by address, and another test's server may have used this port."""
    endpoint._endpoint_client.cache_clear()
