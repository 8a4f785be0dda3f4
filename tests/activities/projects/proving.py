"""Products whose checks the system runs, and a sandbox that has pytest."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from activities.checkpoints import Checkpoints, Files, Root
from activities.commands import sandbox
from activities.projects.proof_run import ProofResult, ProofRunner
from config.schema.shell import ShellConfig
from protocol.handoffs import Handoff

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
VENV = Path(sys.prefix)
SHELL = ShellConfig(
    readable=list(dict.fromkeys([str(VENV), sys.base_prefix])), path=[str(VENV / "bin")]
)
"""The environment of these tests, which has pytest."""
PYTEST = "python3 -m pytest -q tests"
UNITTEST = "python3 -m unittest discover -s tests -t ."
GOOD = {
    "tea.py": "def brew(cups):\n    return cups * 2\n",
    "tests/__init__.py": "",
    "tests/test_tea.py": (
        "import unittest\n\nimport tea\n\n\n"
        "class Tea(unittest.TestCase):\n"
        "    def test_one(self):\n        self.assertEqual(tea.brew(1), 2)\n\n"
        "    def test_two(self):\n        self.assertEqual(tea.brew(2), 4)\n"
    ),
}
"""A module and two tests that pass, for either runner."""


@dataclass
class Bench:
    """Proves products in its own folder."""

    folder: Path
    shell: ShellConfig = field(default_factory=lambda: SHELL)

    def __post_init__(self) -> None:
        # Loading the plugins of these tests takes half the time of a run.
        plain = self.folder / "bin" / "python3"
        plain.parent.mkdir()
        plain.write_text(
            f'#!/bin/sh\nPYTEST_DISABLE_PLUGIN_AUTOLOAD=1 exec {VENV}/bin/python3 "$@"\n'
        )
        plain.chmod(0o755)
        self.shell = self.shell.model_copy(
            update={
                "readable": [*self.shell.readable, str(plain.parent)],
                "path": [str(plain.parent), *self.shell.path],
            }
        )
        self.root = Root.open(self.folder / "r", create=True)
        self.store = Checkpoints.create(self.root, "job").store

    @property
    def proving(self) -> ProofRunner:
        return ProofRunner(self.root, "job", self.shell, "repo")

    def files(self, product: Mapping[str, str]) -> Files:
        files = Files.empty(self.store)
        for path, text in product.items():
            files = files.write(path, text.encode())
        return files

    def handoff(self, command: str | Mapping[str, Any], **details: Any) -> Handoff:
        """Return a coder's handoff with a command for its unit tests."""
        options = {"command": command} if isinstance(command, str) else command
        return Handoff.model_validate(
            {
                "id": "tea-coder-1",
                "from_agent": "initializer",
                "to_agent": "coder",
                "task": "Brew.",
                "inputs": {"commit": "c"},
                "tests": {"unit": {"seconds": 60, **options}},
                **details,
            }
        )

    def prove(
        self,
        product: Mapping[str, str],
        command: str | Mapping[str, Any],
        *,
        before: Mapping[str, str] | None = None,
        **details: Any,
    ) -> ProofResult:
        handed = self.files(before) if before is not None else None
        handoff = self.handoff(command, **details)
        return self.proving.run_checks(self.files(product), handoff, handed)

    def why(self, product: Mapping[str, str], *args: Any, **details: Any) -> str:
        """Return why it is not proved; empty if it is."""
        return " ".join(self.prove(product, *args, **details).problems)
