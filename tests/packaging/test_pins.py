"""The pinned files satisfy pyproject.toml and are not tied to an index."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
FILES = ("requirements.txt", "requirements-dev.txt")
COMPARE = "benchmarks/compare/requirements.txt"
_PIN = re.compile(
    r"^([\w.-]+)==([^\s;]+)[^\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}[ \\]*\n)+)", re.M
)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def pins(name: str) -> dict[str, str]:
    return {canonicalize_name(package): version for package, version, _ in _PIN.findall(text(name))}


def wanted() -> list[tuple[str, str]]:
    project = tomllib.loads(text("pyproject.toml"))
    run, develop = project["project"]["dependencies"], project["dependency-groups"]["dev"]
    run_files = [(file, one) for file in (*FILES, COMPARE) for one in run]
    return [*run_files, *((FILES[1], one) for one in develop)]


@pytest.mark.parametrize(("file", "dependency"), wanted())
def test_every_dependency_is_pinned_to_a_version_that_fits(file: str, dependency: str) -> None:
    requirement = Requirement(dependency)
    version = pins(file).get(canonicalize_name(requirement.name))
    assert version, f"{dependency} is missing; run `make pins`"
    assert requirement.specifier.contains(version)


def test_the_files_agree() -> None:
    run, develop = map(pins, FILES)
    assert run.items() <= develop.items()


@pytest.mark.parametrize("file", [*FILES, COMPARE])
def test_everything_has_hashes_and_nothing_an_address(file: str) -> None:
    lines = [line for line in text(file).splitlines() if line and not line.startswith((" ", "#"))]
    assert len(lines) == len(_PIN.findall(text(file)))
    assert "://" not in text(file)
    assert "--index" not in text(file)
    assert "--find-links" not in text(file)
