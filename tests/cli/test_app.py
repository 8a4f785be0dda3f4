"""The starting program loads only what every command needs."""

import subprocess
import sys

from tests.cli.conftest import REPOSITORY

HEAVY = {"mcp", "neo4j", "openai", "pygit2", "sqlalchemy"}


def test_commands_begin_without_the_libraries_of_activities() -> None:
    print_names = "import sys, cli.app; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", print_names], cwd=REPOSITORY, timeout=90, check=True,
        capture_output=True, text=True,
    )  # fmt: skip
    assert not HEAVY & set(loaded.stdout.split())
