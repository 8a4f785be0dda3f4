"""What a project needs in the sandbox, tried before anything costs money."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from activities.commands import sandbox
from activities.projects.runners import needs_of
from config.schema.agent import AgentConfig
from config.schema.shell import ShellConfig
from protocol.project_start import ProjectStart
from protocol.text import as_sentence, end_of, one_line

SECONDS = 60
"""That one may take."""
MOST_SHOWN = 150
"""Characters of what it printed."""
REMEDY = (
    "Install it where the sandbox sees it: with the system's packages, or in a virtual environment "
    "that shell.readable and shell.path name (for a project under `set`, docs/sandbox.md)"
)


def needs(start: ProjectStart) -> list[str]:
    """The commands that have to work: those that are named, and the runners of settled tests."""
    runners = [needs_of(test.command) for test in start.tests.values()]
    return list(dict.fromkeys(filter(None, [*start.needs, *runners])))


def lacking(start: ProjectStart, agents: Iterable[AgentConfig]) -> str:
    """The first of its needs that does not work for one of its agents, and why; else empty."""
    wanted = needs(start)
    shells = {config.shell.model_dump_json(): config.shell for config in agents} if wanted else {}
    for shell in shells.values():
        for command in wanted:
            if why := _tried(command, shell):
                return as_sentence(f"The project needs `{one_line(command, 100)}`, which {why}")
    return ""


def _tried(command: str, shell: ShellConfig) -> str:
    with tempfile.TemporaryDirectory(prefix="needs-") as folder:
        try:
            ended = sandbox.run(command, Path(folder), shell, SECONDS)
        except sandbox.NoSandbox as problem:
            return f"cannot be run: {problem}"
    if ended.code == 0:
        return ""
    how = ended.trouble or f"exit code {ended.code}"
    said = one_line(end_of(ended.output.strip(), MOST_SHOWN), MOST_SHOWN)
    return f"fails in the sandbox ({how}{f': {said}' if said else ''}). {REMEDY}"
