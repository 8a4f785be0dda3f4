"""Files in a product that replace its test runner or change test results.

A test proves something only if the product cannot change how it is run. This module searches for
names and words; `activities.projects.proof_run` also adds a failing test and checks that it fails.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from activities.checkpoints import Files
from activities.projects.runner_commands import split_runner_commands

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
"""pytest hooks by which a product could change which tests run, or their results."""
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


def is_test_file(path: str) -> bool:
    """Return whether a file belongs to the tests, by its folder or name."""
    return _OF_TESTS.search(path) is not None


def find_stand_ins(product: Files, before: Files | None = None) -> list[str]:
    """Return one sentence per file that replaces a test runner or changes its results.

    Args:
        before: The product as last accepted; files unchanged since then are allowed.
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
    for path, text in product_python_texts(product, but=accepted):
        if (is_test_file(path) or "pytest" in text) and (word := _WORDS.search(text)):
            problems.append(f"{path} has {word[1]}, by which a result can be changed: take it out.")
    return problems


def product_python_texts(
    product: Files, *, but: Collection[tuple[str, str]] = ()
) -> Iterable[tuple[str, str]]:
    """Yield path and text of each Python file of a product that can be decoded.

    Args:
        but: Files to leave out, by path and id.
    """
    for entry in product.walk():
        if (entry.path, entry.id) in but:
            continue
        if entry.kind == "file" and entry.path.endswith(".py") and entry.size <= MAX_BYTES:
            try:
                yield entry.path, product.read_entry(entry).decode()
            except UnicodeDecodeError:
                continue


def with_failing_stand_in_tests(product: Files, name: str) -> tuple[Files, int]:
    """Add two failing tests to each Python test file; also return how many files changed.

    A run that does not report their failure proves nothing. One test is a method called `name`,
    for every runner; the other is a function called `name` plus `FUNCTION`, for pytest only.
    """
    changed, count = product, 0
    for path, text in product_python_texts(product):
        if path.endswith("conftest.py") or not _HOLDS_TESTS.search(text):
            continue
        try:
            place = _failing_test_insert_line(text)
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


def renames_pytest_functions(product: Files) -> bool:
    """Return whether pytest is configured with function names other than `test_…`."""
    settings = [product.entry(name) for name in PYTEST_FILES]
    return any(
        entry and entry.kind == "file" and b"python_functions" in product.read_entry(entry)
        for entry in settings
    )


def _failing_test_insert_line(text: str) -> int:
    """Return the line after a module's docstring and its `__future__` imports."""
    place = 0
    for index, node in enumerate(ast.parse(text).body):
        is_doc = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (is_doc or is_future):
            break
        place = node.end_lineno or place
    return place


def changed_test_definitions(command: str, before: Files | None, now: Files) -> list[str]:
    """Return files that define what the command runs and differ from the accepted ones."""
    if before is None:
        return []
    changed, folder = list[str](), ""
    for words in split_runner_commands(command):
        if words[0] == "cd" and words[1:]:
            folder = f"{folder}{words[1].removeprefix('./').strip('/')}/"
            continue
        changed += [
            path
            for path in _test_definition_files(words, folder, now)
            if _test_definition_content(before, path) != _test_definition_content(now, path)
        ]
    return changed


def _test_definition_files(words: list[str], folder: str, product: Files) -> list[str]:
    """Return the product's files that define what a program runs."""
    program = words[0].rpartition("/")[2]
    named = [*BUILD_FILES.get(program, ())]
    if program in ("npm", "yarn", "pnpm", "bun"):
        named.append("package.json")
    if "/" in words[0] or program in ("sh", "bash", "dash", "python", "python3"):
        named += [word.removeprefix("./") for word in words[:3]]
    paths = [f"{folder}{path}" for path in named if not path.startswith("/")]
    return [
        path
        for path in paths
        if _is_file_of_tested_product(product, path) and not is_test_file(path)
    ]


def _is_file_of_tested_product(product: Files, path: str) -> bool:
    if not path or path.startswith(("/", "-")) or ".." in path.split("/"):
        return False
    entry = product.entry(path)
    return entry is not None and entry.kind == "file"


def _test_definition_content(product: Files, path: str) -> Any:
    """Return the part of a file that defines how tests run; None if the file is missing."""
    if not _is_file_of_tested_product(product, path):
        return None
    data = product.read(path)
    if path.rpartition("/")[2] == "package.json":
        try:
            read = json.loads(data)
        except ValueError:
            return data
        return {key: read.get(key) for key in SCRIPTS} if isinstance(read, Mapping) else data
    return data
