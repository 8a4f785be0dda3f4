"""A Temporal server for all tests of the engine; each has task queues of its own on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from engine.development import Server, server


@pytest.fixture(scope="session")
async def running() -> AsyncIterator[Server]:
    async with server(ui=False) as made:
        yield made
