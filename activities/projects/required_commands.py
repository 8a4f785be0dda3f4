"""Try out the commands a project needs in the sandbox before anything costs money."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from activities.commands import sandbox
from activities.projects.runner_commands import runner_probe
from config.schema.agent import AgentConfig
from config.schema.shell import ShellConfig
from protocol.project_start import ProjectStart
from protocol.short_text import as_sentence, one_line, shorten_to_end

SECONDS = 60
"""Time limit of one command."""
MAX_SHOWN = 150
"""Characters shown of a command's output."""
REMEDY = (
    "Install it where the sandbox sees it: with the system's packages, or in a virtual environment "
    "that shell.readable and shell.path name (for a project under `set`, docs/sandbox.md)"
)


def required_commands(start: ProjectStart) -> list[str]:
    """Return the commands that must work: those in `needs` and the runners of settled tests."""
    runners = [runner_probe(test.command) for test in start.tests.values()]
    return list(dict.fromkeys(filter(None, [*start.needs, *runners])))


def failing_required_command(start: ProjectStart, agents: Iterable[AgentConfig]) -> str:
    """Return the first need that fails for one of the agents, and why; empty if none does."""
    commands = required_commands(start)
    shells = {config.shell.model_dump_json(): config.shell for config in agents} if commands else {}
    for shell in shells.values():
        if shell.setup:
            # What the commands need may not be installed before a job's files are there.
            continue
        for command in commands:
            if why := _required_command_problem(command, shell):
                return as_sentence(f"The project needs `{one_line(command, 100)}`, which {why}")
    return ""


def _required_command_problem(command: str, shell: ShellConfig) -> str:
    with tempfile.TemporaryDirectory(prefix="needs-") as folder:
        try:
            ended = sandbox.run_sandboxed_command(command, Path(folder), shell, SECONDS)
        except sandbox.SandboxUnavailable as problem:
            return f"cannot be run: {problem}"
    if ended.exit_code == 0:
        return ""
    how = ended.trouble or f"exit code {ended.exit_code}"
    output = one_line(shorten_to_end(ended.output.strip(), MAX_SHOWN), MAX_SHOWN)
    return f"fails in the sandbox ({how}{f': {output}' if output else ''}). {REMEDY}"
