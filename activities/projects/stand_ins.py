"""Files in a product that replace its test runner, look for it, or decide what it shows.

The first two are refused by their names and words. Whoever tests sees the third; that its tests
can fail at all is tried by `suite_probes`.
"""

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Mapping
from fnmatch import fnmatch
from typing import Any

from activities.checkpoints import FileEntry, Files
from activities.projects.known_runners import KNOWN_RUNNERS, runner_option_fault
from activities.projects.tests_by_name import is_test_file, source_texts

MODULES = frozenset({"pytest", "_pytest", "unittest", "coverage", "sitecustomize", "usercustomize"})
NODE_RUNNERS = ("jest", "vitest", "mocha", "tap", "tape")
HOOKS = (
    *("pytest_runtest_makereport", "pytest_runtest_protocol", "pytest_runtest_call"),
    *("pytest_runtestloop", "pytest_pyfunc_call", "pytest_runtest_logreport"),
    *("pytest_sessionfinish", "pytest_report_teststatus", "pytest_cmdline_main"),
    *("pytest_exception_interact", "pytest_unconfigure", "pytest_report_to_serializable"),
)
"""pytest hooks by which a product could change results."""
_HOOKS = re.compile(rf"(?<![\w.])({'|'.join(HOOKS)})\b")
_LOOKS_FOR_TESTS = {
    ".py": re.compile(
        r"PYTEST_CURRENT_TEST|PYTEST_VERSION"
        r"|sys\.modules(?=[\s\S]*['\"](?:_?pytest|unittest)['\"])"
        r"|['\"](?:_?pytest|unittest)['\"](?=[\s\S]*sys\.modules)"
    ),
    ".js": re.compile(r"JEST_WORKER_ID|NODE_TEST_CONTEXT|process\.env\.VITEST|\bVITEST_WORKER_ID"),
    ".go": re.compile(r"testing\.Testing\(\)|flag\.Lookup\(\"test\.|\"\.test\"\)"),
    ".rs": re.compile(r"cfg!\(test\)"),
}
"""How product code finds out that it is being tested, by the ending of its files."""
PYTEST_FILES = ("pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg")
EVERY_DECIDER = ("Makefile", "makefile", "GNUmakefile", "*.mk", "sitecustomize.py", "*.pth")
"""Names of files that decide what any runner shows."""


def find_stand_ins(product: Files, before: Files | None = None) -> list[str]:
    """Return one sentence per file that replaces a test runner, looks for it, or changes results.

    Args:
        before: The product as last accepted; files unchanged since then are allowed.
    """
    problems: list[str] = []
    accepted = {(each.path, each.id) for each in before.walk()} if before else set()
    entries = [entry for entry in product.walk() if entry.kind != "folder"]
    packages = {
        entry.path.rpartition("/")[0] for entry in entries if entry.path.endswith("/__init__.py")
    }
    changed = [entry for entry in entries if (entry.path, entry.id) not in accepted]
    for entry in changed:
        problems += _replaced_runner(product, entry, packages)
    fresh = {entry.path for entry in changed}
    endings = (".py", ".js", ".mjs", ".cjs", ".ts", ".go", ".rs")
    for entry, text in source_texts(product, endings, only=fresh):
        ending = entry.path[entry.path.rfind(".") :]
        is_hook_place = ending == ".py" and (is_test_file(entry.path) or "pytest" in text)
        if is_hook_place and (word := _HOOKS.search(text)):
            problems.append(
                f"{entry.path} has {word[1]}, by which a result can be changed: take it out."
            )
        if is_test_file(entry.path) or ".config." in entry.path:
            continue
        pattern = _LOOKS_FOR_TESTS.get(ending, _LOOKS_FOR_TESTS[".js"])
        stood = {look[0] for look in pattern.finditer(_text_before(before, entry.path))}
        word = next((look for look in pattern.finditer(text) if look[0] not in stood), None)
        if word:
            problems.append(
                f"{entry.path} looks whether it is being tested ({word[0]}): what it does under "
                "a test says nothing of what it does elsewhere. Take that out."
            )
    return problems


def _text_before(before: Files | None, path: str) -> str:
    """Return what the file was as last accepted; a look that stood there is no stand-in."""
    entry = before.entry(path) if before else None
    if before is None or entry is None or entry.kind != "file":
        return ""
    return before.read_entry(entry).decode(errors="replace")


def _replaced_runner(product: Files, entry: FileEntry, packages: set[str]) -> list[str]:
    path = entry.path
    folder, _, name = path.rpartition("/")
    above, _, package = folder.rpartition("/")
    module, _, kind = name.partition(".")
    runs = kind in ("py", "pyc") or kind.endswith("so") or entry.kind == "link"
    if module in MODULES and runs and folder not in packages:
        return [f"{path} would be run in place of the real {module}."]
    if name == "__init__.py" and package in MODULES and above not in packages:
        return [f"{folder}/ would be run in place of the real {package}."]
    if name == "package.json" and package in NODE_RUNNERS and above.endswith("node_modules"):
        return [f"{folder}/ would be run in place of the real {package}."]
    if folder.endswith("node_modules/.bin") and name in NODE_RUNNERS:
        return [f"{path} would be run in place of the real {name}."]
    if name == "package.json":
        manifest = _read_package(product, entry)
        dependencies = {
            **_mapping(manifest, "dependencies"),
            **_mapping(manifest, "devDependencies"),
        }
        replaced = [
            n for n in NODE_RUNNERS if re.match(r"[.\w+]*:|[./]", str(dependencies.get(n, "")))
        ]
        if manifest.get("name") in NODE_RUNNERS or replaced:
            name = replaced[0] if replaced else manifest["name"]
            return [f"{path} puts {name} in place of the real one."]
    return []


def _read_package(product: Files, entry: FileEntry) -> Mapping[str, Any]:
    try:
        value = json.loads(product.read_entry(entry)) if entry.kind == "file" else {}
    except (ValueError, RecursionError):
        value = {}
    return value if isinstance(value, Mapping) else {}


def _mapping(mapping: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    part = mapping.get(key)
    return part if isinstance(part, Mapping) else {}


def changed_deciders(
    product: Files, before: Files | None, runners: set[str], *, shared: bool = True
) -> list[str]:
    """Return the files that decide what these runners show and are not as last accepted.

    Args:
        shared: Whether to look at files that decide for every runner as well.
    """
    accepted = {(each.path, each.id) for each in before.walk()} if before else set()
    patterns = [each for runner in runners for each in KNOWN_RUNNERS[runner].deciders]
    patterns += EVERY_DECIDER if shared else ()
    paths = []
    for entry in product.walk():
        name = entry.path.rpartition("/")[2]
        if entry.kind == "folder" or (entry.path, entry.id) in accepted:
            continue
        is_decider = any(fnmatch(name, each) for each in patterns)
        # Tests import the file of their package first.
        in_tests = shared and name == "__init__.py" and is_test_file(entry.path) and entry.size > 0
        if in_tests or (is_decider and _decides(product, before, entry)):
            paths.append(entry.path)
    return paths


def is_decider(path: str) -> bool:
    """Return whether a file decides by its name what some runner shows."""
    name = path.rpartition("/")[2]
    deciders = (each for runner in KNOWN_RUNNERS.values() for each in runner.deciders)
    return any(fnmatch(name, each) for each in (*EVERY_DECIDER, *deciders))


def _decides(product: Files, before: Files | None, entry: FileEntry) -> bool:
    """Return whether the part of a file that decides is another than before."""
    name = entry.path.rpartition("/")[2]
    if name not in ("package.json", *PYTEST_FILES):
        return True
    earlier = before.entry(entry.path) if before else None
    old = _deciding_part(before, earlier) if before and earlier else {}
    return _deciding_part(product, entry) != old


def _deciding_part(product: Files, entry: FileEntry) -> Mapping[str, Any]:
    name = entry.path.rpartition("/")[2]
    if name == "package.json":
        package = _read_package(product, entry)
        return {key: package[key] for key in ("scripts", *NODE_RUNNERS, "ava") if key in package}
    return pytest_settings(product, entry)


def pytest_settings(product: Files, entry: FileEntry) -> Mapping[str, Any]:
    """Return pytest's settings in a file; empty if it has none or cannot be read."""
    if entry.kind != "file":
        return {}
    text = product.read_entry(entry).decode(errors="replace")
    try:
        if entry.path.endswith(".toml"):
            tool = tomllib.loads(text).get("tool", {}).get("pytest", {})
            return dict(tool.get("ini_options", tool))
        parser = configparser.RawConfigParser(strict=False)
        parser.read_string(text)
    except (tomllib.TOMLDecodeError, configparser.Error, AttributeError, TypeError, ValueError):
        return {}
    sections = ("tool:pytest",) if entry.path.endswith("setup.cfg") else ("pytest",)
    return {key: value for each in sections if parser.has_section(each)
            for key, value in parser.items(each)}  # fmt: skip


def settings_fault(product: Files, before: Files | None) -> str:
    """Return which option in a changed configuration of pytest selects tests; empty if none."""
    for entry in product.walk():
        if entry.path.rpartition("/")[2] not in PYTEST_FILES:
            continue
        earlier = before.entry(entry.path) if before else None
        old = pytest_settings(before, earlier) if before and earlier else {}
        added = pytest_settings(product, entry).get("addopts", "")
        if added == old.get("addopts", ""):
            continue
        try:
            words = added if isinstance(added, list) else shlex.split(str(added))
        except ValueError:
            words = [str(added)]
        if fault := runner_option_fault("pytest", [str(word) for word in words]):
            return f"addopts of {entry.path} decides which tests run: {fault}"
    return ""
