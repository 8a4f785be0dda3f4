"""How the tests of a repository are found and what they need is installed."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints, Files, Root
from activities.projects.repository_tests import find_test_command
from activities.projects.setup_recipes import setup_recipe

TEST = {"tests/test_tea.py": "import unittest\n"}
PROJECT = """\
[build-system]
requires = ["setuptools"]
[project]
name = "tea"
optional-dependencies.test = ["hypothesis"]
optional-dependencies.docs = ["sphinx"]
[dependency-groups]
dev = ["ruff>=0.5", {include-group = "more"}]
more = ["tomli; python_version < '3.11'"]
"""


def files(root: Path, content: Mapping[str, str]) -> Files:
    tree = Files.empty(Checkpoints.create(Root.open(root / "r", create=True), "job").store)
    for path, text in content.items():
        tree = tree.write(path, text.encode())
    return tree


@pytest.mark.parametrize(
    ("content", "command"),
    [
        (TEST, "python3 -m unittest discover -s tests -t ."),
        ({**TEST, "tests/conftest.py": ""}, "python3 -m pytest -q"),
        ({**TEST, "tox.ini": "[testenv]\ndeps = pytest\n"}, "python3 -m pytest -q"),
        (
            {**TEST, "setup.cfg": "[tool:pytest]\n", "src/tea/__init__.py": ""},
            "PYTHONPATH=src python3 -m pytest -q",
        ),
        ({"package.json": '{"scripts": {"test": "node --test"}}'}, "npm test"),
        ({"package.json": '{"scripts": {"test": "echo no test specified"}}'}, ""),
        (
            {"package.json": '{"scripts": {"pretest": "npm run lint", "test": "npm run only"}}'},
            "npm run only",
        ),
        (
            {"package.json": '{"scripts": {"pretest": "eslint . && tsc", "test": "npm run a"}}'},
            "npm test",
        ),
        ({"go.mod": "module tea\n"}, "go test ./..."),
        ({"Makefile": "all:\n\ncheck: all\n\tprove t\n"}, "make check"),
        ({"README.md": "tea\n"}, ""),
    ],
)
def test_files_say_how_tests_are_run(
    tmp_path: Path, content: Mapping[str, str], command: str
) -> None:
    assert find_test_command(files(tmp_path, content)) == command


def test_a_subfolder_has_tests_of_its_own(tmp_path: Path) -> None:
    tree = files(tmp_path, {"go.mod": "module tea\n", "py/test_a.py": "import pytest\n"})
    assert find_test_command(tree, "py") == "cd py && python3 -m pytest -q"


def test_a_python_project_is_installed_with_what_its_tests_name(tmp_path: Path) -> None:
    content = {"pyproject.toml": PROJECT, "requirements/test.txt": "attrs\n"}
    made, install = setup_recipe(files(tmp_path, content), "repo", "python3 -m pytest -q")
    assert made == "python3 -m venv /layer"
    assert install.endswith(
        " pytest 'ruff>=0.5' 'tomli; python_version < '\"'\"'3.11'\"'\"'' "
        "--requirement=requirements/test.txt -e '.[test]'"
    )
    assert install.startswith("cd repo && ")
    assert setup_recipe(files(tmp_path / "2", content), "repo", "npm test") == []


def test_a_project_that_lists_itself_among_its_requirements_is_installed_once(
    tmp_path: Path,
) -> None:
    content = {
        "pyproject.toml": PROJECT,
        "requirements-dev.txt": ".[docs, test]\nattrs>=23\n",
        "test-requirements.txt": "-e .\n",
    }
    _, install = setup_recipe(files(tmp_path, content), "repo", "python3 -m pytest -q")
    assert install.endswith(" 'attrs>=23' -e '.[test,docs]'")


@pytest.mark.parametrize(
    ("content", "command", "installs"),
    [
        ({"package.json": "{}"}, "npm test", "npm install "),
        ({"package.json": "{}", "package-lock.json": "{}"}, "npm test", "npm ci "),
        ({"package.json": "{}", "pnpm-lock.yaml": ""}, "npm test", "pnpm install --frozen"),
        (
            {"package.json": "{}", "yarn.lock": "# yarn lockfile v1\n"},
            "yarn test",
            "--prefix /layer yarn && YARN_NODE_LINKER=node-modules YARN_ENABLE_GLOBAL_CACHE=0 "
            "YARN_IGNORE_PATH=1 "
            "/layer/bin/yarn install --frozen-lockfile --ignore-scripts",
        ),
        (
            {"package.json": "{}", "yarn.lock": "__metadata:\n  version: 8\n"},
            "npm test",
            "/layer/bin/yarn install --immutable --mode=skip-build",
        ),
        ({"Cargo.toml": ""}, "cargo test", "cd repo && CARGO_HOME=/layer/cargo cargo fetch"),
        ({"go.sum": ""}, "go test ./...", "cd repo && GOMODCACHE=/layer/go go mod download"),
    ],
)
def test_packages_are_installed_as_the_files_say(
    tmp_path: Path, content: Mapping[str, str], command: str, installs: str
) -> None:
    assert installs in "\n".join(setup_recipe(files(tmp_path, content), "repo", command))


def test_a_module_without_dependencies_needs_no_setup(tmp_path: Path) -> None:
    assert setup_recipe(files(tmp_path / "1", TEST), "repo", "python3 -m unittest") == []
    assert setup_recipe(files(tmp_path, {"go.mod": "module tea\n"}), "repo", "go test ./...") == []
