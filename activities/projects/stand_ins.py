"""What in a product would stand in for its test runner, or settle what a test comes to.

A test that is run shows something only where the product does not decide how it is run. Names and
words are looked for here; `activities.projects.proof_run` adds a failing test besides and looks
that it fails.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from activities.checkpoints import Files
from activities.projects.runners import simple_commands

MODULES = frozenset(
    {"pytest", "_pytest", "py", "pluggy", "iniconfig", "unittest", "coverage", "pytest_cov"}
    | {"xdist", "nose2", "sitecustomize", "usercustomize"}
)
HOOKS = (
    *("pytest_runtest_makereport", "pytest_runtest_protocol", "pytest_runtest_call"),
    *(
        "pytest_runtestloop",
        "pytest_pyfunc_call",
        "pytest_runtest_logreport",
        "pytest_sessionfinish",
    ),
    *("pytest_report_teststatus", "pytest_cmdline_main", "pytest_collection_modifyitems"),
    *("pytest_exception_interact", "pytest_unconfigure", "pytest_report_to_serializable"),
)
"""Hooks of pytest by which a product could change which tests are run, or what they come to."""
WORDS = (*HOOKS, "_pytest", "os._exit", "PYTEST_ADDOPTS")
_WORDS = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, WORDS))})\b")
_OF_TESTS = re.compile(r"(?:^|/)(?:tests?|specs?|__tests__|e2e|testing)/|(?:^|/)test_[^/]*$"
                       r"|[._]test\.\w+$|[._]spec\.\w+$|(?:^|/)conftest\.py$")  # fmt: skip
_HOLDS_TESTS = re.compile(r"^\s*(?:async\s+)?def test|\bTestCase\b", re.MULTILINE)
MAX_BYTES = 1_000_000
BUILD_FILES = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "tox": ("tox.ini", "pyproject.toml", "setup.cfg"),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile"),
    "rake": ("Rakefile",),
}
PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
FUNCTION = "_as_function"
SCRIPTS = ("scripts", "jest", "mocha", "vitest", "ava")
"""Keys of a package.json that decide how its tests are run."""


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests of a product, by its place or its name."""
    return _OF_TESTS.search(path) is not None


def find_stand_ins(product: Files, before: Files | None = None) -> list[str]:
    """What stands in for a test runner, a sentence each; empty when nothing does.

    Args:
        before: The product as it was last accepted: what is as it was there may stay.
    """
    problems: list[str] = []
    accepted = {(each.path, each.id) for each in before.walk()} if before else set()
    entries = [entry for entry in product.walk() if entry.kind != "folder"]
    paths = [entry.path for entry in entries]
    packages = {path.rpartition("/")[0] for path in paths if path.endswith("/__init__.py")}
    for entry in entries:
        path = entry.path
        if (path, entry.id) in accepted:
            continue
        folder, _, name = path.rpartition("/")
        above, _, package = folder.rpartition("/")
        module, _, kind = name.partition(".")
        runs = kind in ("py", "pyc") or kind.endswith("so") or entry.kind == "link"
        if module in MODULES and runs and folder not in packages:
            problems.append(f"{path} would be run in place of the real {module}.")
        elif name == "__init__.py" and package in MODULES and above not in packages:
            problems.append(f"{folder}/ would be run in place of the real {package}.")
    for path, text in python_texts(product, but=accepted):
        if (is_test(path) or "pytest" in text) and (word := _WORDS.search(text)):
            problems.append(f"{path} has {word[1]}, by which a result can be changed: take it out.")
    return problems


def python_texts(
    product: Files, *, but: Collection[tuple[str, str]] = ()
) -> Iterable[tuple[str, str]]:
    """The Python files of a product that can be read, each with its text.

    Args:
        but: Those that are left out, by path and id.
    """
    for entry in product.walk():
        if (entry.path, entry.id) in but:
            continue
        if entry.kind == "file" and entry.path.endswith(".py") and entry.size <= MAX_BYTES:
            try:
                yield entry.path, product.read_entry(entry).decode()
            except UnicodeDecodeError:
                continue


def with_failing_tests(product: Files, name: str) -> tuple[Files, int]:
    """The product with two tests in each Python file of tests, and in how many files.

    They fail wherever they are run: a run that does not say so tells nothing of the other tests.
    One is a method with that name, for every runner; the other, for pytest alone, is a function
    with the name and `FUNCTION` after it.
    """
    changed, count = product, 0
    for path, text in python_texts(product):
        if path.endswith("conftest.py") or not _HOLDS_TESTS.search(text):
            continue
        try:
            place = _after_head(text)
        except (SyntaxError, ValueError):
            continue
        lines = text.split("\n")
        lines[place:place] = [
            f"import unittest as _{name}",
            f"class T{name}(_{name}.TestCase):",
            f"    def {name}(self): self.fail('this test has to fail')",
            f"def {name}{FUNCTION}(): raise AssertionError('this test has to fail')",
        ]
        changed = changed.write(path, "\n".join(lines).encode())
        count += 1
    return changed, count


def renames_tests(product: Files) -> bool:
    """Whether pytest is told there that functions of tests have other names than `test_…`."""
    settings = [product.entry(name) for name in PYTEST_FILES]
    return any(
        entry and entry.kind == "file" and b"python_functions" in product.read_entry(entry)
        for entry in settings
    )


def _after_head(text: str) -> int:
    """The line after a module's docstring and its imports from the future."""
    place = 0
    for index, node in enumerate(ast.parse(text).body):
        is_doc = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (is_doc or is_future):
            break
        place = node.end_lineno or place
    return place


def changed_definitions(command: str, before: Files | None, now: Files) -> list[str]:
    """Files that say what the command runs and are not as they were accepted."""
    if before is None:
        return []
    changed, folder = list[str](), ""
    for words in simple_commands(command):
        if words[0] == "cd" and words[1:]:
            folder = f"{folder}{words[1].removeprefix('./').strip('/')}/"
            continue
        changed += [
            path
            for path in _definition_files(words, folder, now)
            if _definition_content(before, path) != _definition_content(now, path)
        ]
    return changed


def _definition_files(words: list[str], folder: str, product: Files) -> list[str]:
    """Files of the product that a program is told what to run by."""
    program = words[0].rpartition("/")[2]
    named = [*BUILD_FILES.get(program, ())]
    if program in ("npm", "yarn", "pnpm", "bun"):
        named.append("package.json")
    if "/" in words[0] or program in ("sh", "bash", "dash", "python", "python3"):
        named += [word.removeprefix("./") for word in words[:3]]
    paths = [f"{folder}{path}" for path in named if not path.startswith("/")]
    return [path for path in paths if _is_file(product, path) and not is_test(path)]


def _is_file(product: Files, path: str) -> bool:
    if not path or path.startswith(("/", "-")) or ".." in path.split("/"):
        return False
    entry = product.entry(path)
    return entry is not None and entry.kind == "file"


def _definition_content(product: Files, path: str) -> Any:
    """What a file says of how tests are run; None if it is not there."""
    if not _is_file(product, path):
        return None
    data = product.read(path)
    if path.rpartition("/")[2] == "package.json":
        try:
            read = json.loads(data)
        except ValueError:
            return data
        return {key: read.get(key) for key in SCRIPTS} if isinstance(read, Mapping) else data
    return data
