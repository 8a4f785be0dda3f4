import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pygit2
import pytest

from activities.checkpoints import Checkpoints, Root, open_checkpoints
from activities.checkpoints.object_store import ObjectStore
from tests.activities.checkpoints.hosts import Host


@pytest.fixture
def checkpoints(root: Root) -> Checkpoints:
    return open_checkpoints(root, "job", create=True)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> ObjectStore:
    """A repository for all tests of a module, since they only add objects."""
    path = tmp_path_factory.mktemp("repo")
    pygit2.init_repository(str(path), bare=True)
    return ObjectStore(path)


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Start:
    """Starts a Python program that prints a line when it is ready; returns then."""

    def started(code: str, *arguments: str) -> "subprocess.Popen[str]":
        child = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    return started


@pytest.fixture
def endpoint(object_store: str) -> str:
    return object_store


@pytest.fixture
def host_a(tmp_path: Path, address: str) -> Host:
    return Host(tmp_path / "here", address)


@pytest.fixture
def host_b(tmp_path: Path, address: str) -> Host:
    return Host(tmp_path / "there", address)
