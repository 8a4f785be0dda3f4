"""Environment variables of commands, with values from the worker's environment."""

from __future__ import annotations

import os

from activities.redaction.credentials import credential_value
from config.schema.shell import ShellConfig
from protocol.fork_command import fork_command


def missing_variables(config: ShellConfig) -> dict[str, str]:
    """Return the variables of commands whose value the worker lacks, with the worker's names."""
    sources = config.environment.items()
    return {name: source for name, source in sources if not credential_value(source)}


def missing_variable(config: ShellConfig) -> str | None:
    """Return which worker variable is missing and what to do, or None."""
    for name, source in missing_variables(config).items():
        return (
            f"shell.environment takes {name} from the worker's variable {source}, which is not "
            f"set or empty. Set {source} where workers start, or take {name} out of "
            "shell.environment; a job under way needs a fork for that: "
            f"{fork_command('shell.environment={…}')}"
        )
    return None


def read_variables(config: ShellConfig) -> dict[str, str]:
    """Return the variables of commands; from now on their values are redacted."""
    return {name: credential_value(source) or "" for name, source in config.environment.items()}


def command_variable_arguments(config: ShellConfig) -> bytes:
    """Return `--setenv` arguments as bubblewrap reads them from a descriptor.

    Other users of the machine can see command lines and environments of processes.
    """
    return b"".join(
        b"--setenv\0" + name.encode() + b"\0" + os.fsencode(value) + b"\0"
        for name, value in read_variables(config).items()
    )
