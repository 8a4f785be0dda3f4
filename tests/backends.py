"""The backends of each kind. A new one is a row here, and the suites run with it as well.

Fixtures in `conftest.py` give a test an empty one: `address` of REMOTES, `graph_place` of GRAPHS,
`url` of STORES. In what backends may differ, they declare as their `capabilities`.
"""

import itertools
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from activities.checkpoints.remote import remote_checkpoint_area
from activities.checkpoints.s3_remote import S3Remote
from protocol.s3_address import S3Address
from tests.activities.requirements.graph.serving import Server
from tests.activities.wires import wired
from tests.buckets import create_bucket

_numbers = itertools.count(1)


@dataclass(frozen=True)
class RemoteBackend:
    empty: Callable[[pytest.FixtureRequest, Path], AbstractContextManager[str]]
    """The address of an empty one, which may lie in the folder."""
    unreachable: tuple[str, str, str]
    """What in an address to replace by what, so that nothing is there, and what is then said."""
    objects: Callable[[str], list[str]]
    """Names what is stored for `job` beside the refs."""


def bare_repository(folder: Path) -> Path:
    path = folder / "served" / "remote.git"
    subprocess.run(["git", "init", "--quiet", "--bare", str(path)], check=True)
    return path


def stored_packs(url: str) -> list[str]:
    bucket = S3Remote(S3Address.parse(url))._bucket  # without anything cached
    return bucket.stale_keys(f"{remote_checkpoint_area('job')}/packs", -60)


def _git_objects(url: str) -> list[str]:
    return [str(path) for path in Path(url.removeprefix("file://")).glob("objects/??/*")]


def _git(wire: str, request: pytest.FixtureRequest, folder: Path) -> AbstractContextManager[str]:
    return wired(wire, bare_repository(folder), request.getfixturevalue("monkeypatch"))


@contextmanager
def _bucket(request: pytest.FixtureRequest, _folder: Path) -> Iterator[str]:
    request.getfixturevalue("bucket_keys")
    yield create_bucket(request.getfixturevalue("object_store"))


def _git_over(wire: str) -> RemoteBackend:
    away = ("remote.git", "away.git", "does not appear to be a git repository")
    return RemoteBackend(partial(_git, wire), away, _git_objects)


REMOTES = {
    "git": _git_over("file"),
    "s3": RemoteBackend(_bucket, (r"\d+$", "1", "cannot be reached"), stored_packs),
}
WIRES = {"https": _git_over("https"), "ssh": _git_over("ssh")}
"""Other ways to a git repository, for tests that concern the connection."""


def _graph_in_server(request: pytest.FixtureRequest) -> str:
    server: Server = request.getfixturevalue("graph_server")
    server.empty()
    return server.url


# A name that a session's fixture has makes its tests run together.
GRAPHS: dict[str, Callable[[pytest.FixtureRequest], str | None]] = {
    "embedded": lambda _request: None,
    "graph_server": _graph_in_server,
}
"""Values of LONGHAUL_GRAPH_URL."""


def _database_in_server(request: pytest.FixtureRequest, _folder: Path) -> str:
    server: str = request.getfixturevalue("postgres")
    name = f"test{next(_numbers)}"
    address = server.replace("postgresql://", "postgresql+psycopg://")
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return server.replace("/postgres?", f"/{name}?")


STORES: dict[str, Callable[[pytest.FixtureRequest, Path], str]] = {
    "sqlite": lambda _request, folder: f"sqlite:///{folder / 'store.sqlite3'}",
    "postgres": _database_in_server,
}
"""Addresses of empty databases."""
