"""How what a repository's tests need is installed, as its files say."""

from __future__ import annotations

import configparser
import re
import shlex
import tomllib
from collections.abc import Iterator
from typing import Any

from activities.checkpoints import Files
from activities.projects.repository_tests import read_top_file
from config.schema.shell import LAYER

TEST_NAMES = ("test", "tests", "testing", "dev")
"""Names of extras and groups with what tests need."""
_REQUIREMENTS = re.compile(
    r"(?:[\w/]*requirements[-_.]?/?(?:tests?|testing|dev)|(?:tests?|testing|dev)[-_.]?requirements"
    r"|tests?/requirements)\.txt"
)
_REQUIREMENT = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[\w,.-]+\])?\s*(?:[<>=!~][^{}$]*)?(?:;.*)?")
_SESSION_INSTALL = re.compile(r"session\.install\(([^)]*)\)")


def python_setup_recipe(top: Files, folder: str, command: str) -> list[str]:
    """Return the commands that install a Python project and what its tests need into the layer.

    The project is installed in a form that leads to its files in the workspace, so that later
    commands run what is there then.

    Args:
        top: The folder of the repository that has the project.
        folder: Its path in the workspace.
        command: The command that runs the tests.
    """
    if "python3 " not in command:
        return []
    project = _read_toml(read_top_file(top, "pyproject.toml"))
    named = ["pytest"] if "pytest" in command else []
    named += [each for each in _requirements(top, project) if _REQUIREMENT.fullmatch(each)]
    files = [e.path for e in top.walk() if e.kind == "file" and _REQUIREMENTS.fullmatch(e.path)]
    for path in files:
        named += ["-r", f"{folder}/{path}"]
    extras = [name for name in _mapping(project, "project", "optional-dependencies")
              if name in TEST_NAMES]  # fmt: skip
    if any(top.entry(name) for name in ("setup.py", "setup.cfg")) or "build-system" in project:
        named += ["-e", f"./{folder}[{','.join(extras)}]" if extras else f"./{folder}"]
    elif top.entry("requirements.txt"):
        named += ["-r", f"{folder}/requirements.txt"]
    install = f"{LAYER}/bin/python -m pip install -q --disable-pip-version-check"
    # A version is read from git's records, which are not there.
    version = "SETUPTOOLS_SCM_PRETEND_VERSION=0.0.1"
    return [f"python3 -m venv {LAYER}", f"{version} {install} {shlex.join(dict.fromkeys(named))}"]


def _requirements(top: Files, project: dict[str, Any]) -> Iterator[str]:
    """Yield what groups and environments for tests name, in pip's form."""
    groups = _mapping(project, "dependency-groups")
    waiting, seen = [name for name in TEST_NAMES if name in groups], set[str]()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for each in groups.get(name) or []:
            if isinstance(each, str):
                yield each
            elif isinstance(each, dict) and (other := each.get("include-group")) not in seen:
                waiting.append(str(other))
    for name in TEST_NAMES:
        found = _mapping(project, "tool", "poetry", "group", name, "dependencies")
        yield from (each for each in found if each != "python")
    yield from (e for e in _mapping(project, "tool", "poetry", "dev-dependencies") if e != "python")
    for environment in _mapping(project, "tool", "hatch", "envs").values():
        for key in ("dependencies", "extra-dependencies"):
            yield from map(str, environment.get(key) or [])
    tox = configparser.RawConfigParser(strict=False)
    try:
        tox.read_string(read_top_file(top, "tox.ini"))
        yield from tox.get("testenv", "deps", fallback="").split("\n")
    except configparser.Error:
        pass
    for listed in _SESSION_INSTALL.findall(read_top_file(top, "noxfile.py")):
        yield from re.findall(r"[\"']([A-Za-z][^\"']*)[\"']", listed)


def _mapping(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    found: Any = data
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
