"""Warnings of `config check` about verifiers that an agent could rewrite."""

import pytest

from cli.checks.config_checks import list_open_verifiers
from config.agent_files import load_agent


@pytest.mark.parametrize(
    ("command", "frozen", "loose"),
    [
        ("sh check.sh", None, ["check.sh"]),
        ("cd web && make test", None, ["web/Makefile"]),
        ("sh ci/check.sh", ["ci/**"], []),
        ("python3 -m pytest -q tests/test_tea.py", None, []),
        ("ruff check .", None, []),
    ],
)
def test_a_verifier_through_a_file_of_the_agent_is_warned_of(
    command: str, frozen: list[str] | None, loose: list[str]
) -> None:
    verifier = {"name": "v", "command": command, "frozen": frozen}
    warnings = list_open_verifiers(load_agent("generalist", {"verifiers": [verifier]}))
    assert len(warnings) == len(loose)
    assert all(f"goes through {path}, a file" in warnings[0] for path in loose)
