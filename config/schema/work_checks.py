"""The schema of what checks a job's work (`tests`, `verifiers`, `sealed`)."""

from typing import Literal

from pydantic import Field

from config.schema.config_data import ConfigData
from protocol.phase import PhaseKind


class RepositoryTests(ConfigData):
    command: str = Field("", max_length=1000)
    """The command that runs the repository's tests, at its top; empty: the one that its files say.
    """
    seconds: int = Field(600, ge=1, le=3600)
    """Time limit of one run, in seconds."""
    required: bool = True
    """Whether a job waits at its start, before any model call, if no test can be run."""
    setup: bool = False
    """Whether, if no test can be run and shell.setup is empty, what the repository's files name is
    installed first, over shell.setup_network."""


class Verifier(ConfigData):
    name: str = Field(min_length=1, max_length=60)
    """Name for people."""
    command: str = Field(min_length=1)
    """Command run in the sandbox on a copy of the workspace; exit code 0 lets the phase end."""
    seconds: int = Field(300, ge=1, le=3600)
    """Time limit in seconds."""
    phases: list[PhaseKind] = Field(["tactical"])
    """Kinds of phase at whose end it runs; it always runs before the job completes."""
    frozen: list[str] | None = None
    """Patterns of files that decide what it shows, such as `ci/**`: they must be as they were when
    the job began. null: files that the command names, or the configuration of its test runner."""


class Sealed(ConfigData):
    """A file or folder of the worker's machine that only checks may read."""

    path: str = Field(pattern=r"^/")
    """Absolute path on the worker's machine. Verifiers, and proofs by commands of the project's
    file, see it at `/sealed/<its name>`; the agent's commands and tools do not."""
    done_when: bool = False
    """Whether `done_when` commands, which an agent writes, see it as well."""
    show: Literal["counts", "output"] = "counts"
    """What the agent sees of a check's result: names of tests and counts, or the output."""
    digest: str = ""
    """Set when a job starts; a check refuses other content."""
