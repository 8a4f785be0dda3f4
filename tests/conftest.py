"""Real documents, from the source archives named in sources.txt."""

import os
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

_FETCHED = Path(__file__).with_name(".fetched")
_COMMAND = Path(__file__).with_name("sources.txt")

Real = Callable[[str], bytes]


@cache
def _archive(project: str) -> tarfile.TarFile:
    [path] = _FETCHED.glob(f"{project}-*.tar.gz")
    return tarfile.open(path)


@pytest.fixture(scope="session")
def real() -> Real:
    """The bytes of a document by its path in a source archive: `real("pypdf-7.1.0/…/a.pdf")`."""
    if not list(_FETCHED.glob("*.tar.gz")):
        message = f"the real documents are not there; fetch them with the command in {_COMMAND}"
        # A CI that never fetched them must not be green.
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)

    def read(path: str) -> bytes:
        member = _archive(path.split("-", maxsplit=1)[0]).extractfile(path)
        assert member is not None
        return member.read()

    return read
