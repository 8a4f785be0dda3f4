"""How the tests of a repository are run, as its files say."""

import json
import re
import shlex
from contextlib import suppress

from activities.checkpoints import Files
from activities.projects.tests_by_name import is_test_file

MAX_BYTES = 1_000_000
BY_FILE = {
    "Cargo.toml": "cargo test",
    "go.mod": "go test ./...",
    "pom.xml": "mvn -q test",
    "gradlew": "./gradlew test",
    "build.gradle": "gradle test",
    "build.gradle.kts": "gradle test",
    ".rspec": "rspec",
    "phpunit.xml": "phpunit",
    "phpunit.xml.dist": "phpunit",
}
"""The command, by a file at the top of the repository."""
_PYTEST = re.compile(r"\bpytest\b|\[tool:pytest\]")
_MAKE_TEST = re.compile(r"^(test|check)\s*:(?!=)", re.MULTILINE)
_NO_TEST = "no test specified"
_ANOTHER_SCRIPT = re.compile(r"npm run (?:-s |--silent )?([\w:-]+)")
_LINTS = re.compile(r"\b(?:lint|eslint|standard|xo|prettier|jshint)\b")
_BUILDS = re.compile(r"build|compil|transpil|generat|prepare|\b(?:tsc|babel|rollup|webpack)\b")


def find_test_command(product: Files, subfolder: str = "") -> str:
    """Return the command that runs the tests, at the top of the repository; empty if unknown.

    Args:
        product: The repository's files.
        subfolder: The folder of it that the work is in.
    """
    top = product.subfolder(subfolder) if subfolder else product
    command = _command_at_top(top)
    return f"cd {shlex.quote(subfolder)} && {command}" if command and subfolder else command


def _command_at_top(top: Files) -> str:
    if command := _python_command(top):
        return command
    with suppress(ValueError, AttributeError):
        scripts = json.loads(read_top_file(top, "package.json") or "{}").get("scripts", {})
        script = scripts.get("test")
        if script and _NO_TEST not in script:
            return _node_command(script, str(scripts.get("pretest") or ""))
    for name, command in BY_FILE.items():
        if top.entry(name):
            return command
    if any(entry.path.endswith((".sln", ".csproj")) for entry in top.children("")):
        return "dotnet test"
    target = _MAKE_TEST.search(read_top_file(top, "Makefile"))
    return f"make {target[1]}" if target else ""


def _node_command(script: str, before: str) -> str:
    """Return the command for a package's tests, without a linter that runs before them."""
    only_lints = _LINTS.search(before) and not _BUILDS.search(before)
    alone = _ANOTHER_SCRIPT.fullmatch(script.strip())
    return f"npm run {alone[1]}" if only_lints and alone else "npm test"


def _python_command(top: Files) -> str:
    """Return the command for tests in Python; the package may lie below src/."""
    tests = [
        entry.path
        for entry in top.walk()
        if entry.path.endswith(".py") and entry.kind == "file" and is_test_file(entry.path)
    ]
    if not tests:
        return ""
    named = ("pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini", "noxfile.py", "conftest.py")
    is_pytest = any(path.endswith("conftest.py") for path in tests) or any(
        _PYTEST.search(read_top_file(top, path)) for path in (*named, *tests[:200])
    )
    source = top.entry("src")
    below = source is not None and any(
        entry.path.endswith("/__init__.py") for entry in top.walk("src")
    )
    runner = "python3 -m pytest -q" if is_pytest else "python3 -m unittest discover"
    if not is_pytest and not any("/" not in path for path in tests):
        folders = sorted({path.partition("/")[0] for path in tests} - {"src"})
        runner += f" -s {shlex.quote(folders[0])} -t ." if folders else " -s src"
    return f"PYTHONPATH=src {runner}" if below else runner


def read_top_file(top: Files, path: str) -> str:
    """Return the text of a file; empty if there is none, or if it is very large."""
    entry = top.entry(path)
    if entry is None or entry.kind != "file" or entry.size > MAX_BYTES:
        return ""
    return top.read_entry(entry).decode(errors="replace")
