"""How what a repository's tests need is installed, as its files say."""

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
_ITSELF = re.compile(r"^(?:-e\s+)?\.(?:\[([\w,\s.-]+)\])?\s*$", re.MULTILINE)
"""A project in its own list of requirements, with extras."""
_SESSION_INSTALL = re.compile(r"session\.install\(([^)]*)\)")


_LINKED_PACKAGES = (
    "find {layer}/node_modules -maxdepth 2 -type l | while read -r link; do "
    'to=$(readlink -m "$link"); case "$to" in {layer}/node_modules/*) ;; {layer}/*) '
    'ln -sfn "/workspace/{folder}${{to#{layer}}}" "$link";; esac; done'
)
"""Leads the packages of a workspace to their files in the repository."""


def setup_recipe(top: Files, folder: str, command: str) -> list[str]:
    """Return the commands that install a project and what its tests need into the layer.

    Args:
        top: The folder of the repository that has the project.
        folder: Its path in the workspace.
        command: The command that runs the tests.

    Returns:
        Nothing if no file says what is needed.
    """
    if "python3 " in command:
        return _python_recipe(top, folder, command)
    if re.search(r"\b(?:p?npm|yarn|node)\b", command) and top.entry("package.json"):
        return _node_recipe(top, folder)
    if "cargo " in command:
        return _offline_recipe("cargo", "CARGO_HOME", "CARGO_NET_OFFLINE=true", folder, "fetch")
    if "go test" in command and top.entry("go.sum"):
        return _offline_recipe("go", "GOMODCACHE", "GOPROXY=off", folder, "mod download")
    return []


def _node_recipe(top: Files, folder: str) -> list[str]:
    """Return how npm, pnpm or yarn installs packages, into the layer's `node_modules`.

    Scripts of packages are run afterwards, so that one which cannot be does not matter to others.
    """
    packages = "find . -name package.json -not -path '*/node_modules/*'"
    others = "package-lock.json npm-shrinkwrap.json pnpm-lock.yaml pnpm-workspace.yaml .npmrc "
    others += "yarn.lock .yarnrc .yarnrc.yml"
    listed = f"({packages}; ls -d {others} 2>/dev/null)"
    copy = f"(cd {shlex.quote(folder)} && {listed} | tar -c -T -) | tar -x -C {LAYER}"
    flags = "--ignore-scripts --no-audit --no-fund --loglevel=error"
    install, linked = f"npm install {flags}", []
    if top.entry("pnpm-lock.yaml"):
        get = f"command -v pnpm >/dev/null || npm install -g --prefix {LAYER} pnpm"
        install = f"({get}) && pnpm install --frozen-lockfile --ignore-scripts"
    elif lock := read_top_file(top, "yarn.lock"):
        # The lock of newer versions begins with its own version.
        is_new = "__metadata:" in lock
        package = "@yarnpkg/cli-dist" if is_new else "yarn"
        flags = "--immutable --mode=skip-build" if is_new else "--frozen-lockfile --ignore-scripts"
        install = f"npm install -g --prefix {LAYER} {package} && YARN_NODE_LINKER=node-modules "
        install += f"YARN_ENABLE_GLOBAL_CACHE=0 YARN_IGNORE_PATH=1 {LAYER}/bin/yarn install {flags}"
    elif top.entry("package-lock.json") or top.entry("npm-shrinkwrap.json"):
        install = f"npm ci {flags}"
    if top.entry("pnpm-workspace.yaml") or '"workspaces"' in read_top_file(top, "package.json"):
        linked = [_LINKED_PACKAGES.format(layer=LAYER, folder=folder)]
    scripts = "npm rebuild --loglevel=error || echo 'not every script of a package could be run'"
    return [copy, f"cd {LAYER} && {install}", *linked, f"cd {LAYER} && ({scripts})"]


def _offline_recipe(
    program: str, variable: str, offline: str, folder: str, download: str
) -> list[str]:
    """Return how packages are downloaded, and a program that looks for them in the layer only."""
    place, script = f"{LAYER}/{program}", f"{LAYER}/bin/{program}"
    lines = f'#!/bin/sh\\nexport {variable}={place} {offline}\\nexec %s "$@"\\n'
    return [
        f"cd {shlex.quote(folder)} && {variable}={place} {program} {download}",
        f"mkdir -p {LAYER}/bin && p=$(command -v {program}) && printf '{lines}' \"$p\" > {script} "
        f"&& chmod +x {script}",
    ]


def _python_recipe(top: Files, folder: str, command: str) -> list[str]:
    """Return how pip installs a project, in a form that leads to its files in the workspace.

    So later commands run what is there then.
    """
    project = _read_toml(read_top_file(top, "pyproject.toml"))
    named = ["pytest"] if "pytest" in command else []
    named += [each for each in _requirements(top, project) if _REQUIREMENT.fullmatch(each)]
    extras = [name for name in _mapping(project, "project", "optional-dependencies")
              if name in TEST_NAMES]  # fmt: skip
    for path in (e.path for e in top.walk() if _REQUIREMENTS.fullmatch(e.path)):
        text = read_top_file(top, path)
        if not (itself := _ITSELF.findall(text)):
            named.append(f"--requirement={path}")
            continue
        # pip takes a project once: as it is installed below.
        extras += [name.strip() for listed in itself for name in listed.split(",") if name]
        named += [line for line in text.splitlines() if _REQUIREMENT.fullmatch(line)]
    if any(top.entry(name) for name in ("setup.py", "setup.cfg")) or "build-system" in project:
        named += ["-e", f".[{','.join(dict.fromkeys(extras))}]" if extras else "."]
    elif top.entry("requirements.txt"):
        named.append("--requirement=requirements.txt")
    if not named:
        return []
    install = f"{LAYER}/bin/python -m pip install -q --disable-pip-version-check"
    # A version is read from git's records, which are not there.
    version = "SETUPTOOLS_SCM_PRETEND_VERSION=0.0.1"
    what = shlex.join(dict.fromkeys(named))
    # Files of requirements name other folders as they are seen from the project's own.
    return [f"python3 -m venv {LAYER}", f"cd {shlex.quote(folder)} && {version} {install} {what}"]


def _requirements(top: Files, project: dict[str, Any]) -> Iterator[str]:
    """Yield what groups and environments for tests name, in pip's form."""
    groups = _mapping(project, "dependency-groups")
    waiting, visited = [name for name in TEST_NAMES if name in groups], set[str]()
    while waiting:
        name = waiting.pop()
        visited.add(name)
        for each in groups.get(name) or []:
            if isinstance(each, str):
                yield each
            elif isinstance(each, dict) and (other := each.get("include-group")) not in visited:
                waiting.append(str(other))
    for name in TEST_NAMES:
        dependencies = _mapping(project, "tool", "poetry", "group", name, "dependencies")
        yield from (each for each in dependencies if each != "python")
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
    value: Any = data
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _read_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}
