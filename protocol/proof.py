"""How a feature is proved: the commands that the system runs for its checks, and what came of them.

Nobody's word stands in for a run of the system's own, and no earlier run does.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from protocol.state import Data

Check = Literal["unit", "api", "browser", "db"]
"""How a feature is tested; `browser` is a test through a user interface."""


PROOF_GUARD = "proof"
"""The name under which the system's own runs refuse a job's end."""


class CheckCommand(Data):
    """A command that tests what a check is about. It is run at the top of the repository."""

    command: str = Field(min_length=1, max_length=1000)
    min_tests: int = Field(1, ge=1, le=1_000_000)
    """Tests that it has to run at least, those that were skipped not counted."""
    seconds: int = Field(600, ge=1, le=3600)
    """Most seconds of one run."""
    report: str = Field("", max_length=300, pattern=r"^(?:[\w-][\w.-]*/)*(?:[\w-][\w.-]*)?$")
    """Path of a JUnit XML file that it writes; pytest gets an option to write one without this."""


def in_repository(command: str, folder: str) -> str:
    """The command as it is run at the top of the repository, which agents see as a folder."""
    first, joined, rest = command.strip().partition("&&")
    words = first.split()
    there = words[:1] == ["cd"] and words[1:] in ([folder], [f"{folder}/"], [f"./{folder}"])
    return rest.strip() if joined and there else command.strip()


def _command_from_text(value: Any) -> Any:
    return {"command": value} if isinstance(value, str) else value


Tests = dict[Check, Annotated[CheckCommand, BeforeValidator(_command_from_text)]]
"""The command of each check; a text alone is one with the defaults."""


class AcceptedRun(Data):
    """What a command ran when it was last accepted: it may not come to run less."""

    command: str
    tests: int
    skipped: int = 0
    seconds: int = 600
    report: str = ""
    feature: str = ""
    """The newest feature that it proved."""


class Proof(Data):
    """One run of a check, as the system saw it."""

    check: Check
    ran: str
    """The command; of a check that no command can make, the tool call."""
    passed: bool
    exit_code: int | None = None
    """None for a tool, and for a command that was ended."""
    tests: int | None = None
    """How many were run, those that were skipped left out."""
    failed: int = 0
    skipped: int = 0
    coverage: float | None = None
    """Percentage of the code, where the run printed it."""
    why: str = ""
    """What was wrong with it."""
    end: str = ""
    """The end of the output, or the head of a tool's answer."""
    cut: bool = False
    """Whether there was more."""
    commit: str = ""
    """What was tested."""
    asked_by: str = ""
    """The handoff at whose end it was run."""
    phase: int = 0
    step: int = 0
    """When, by the job's own count."""

    @property
    def line(self) -> str:
        """`unit: python3 -m pytest -q: exit code 0, 28 tests, 1 skipped`."""
        parts = [] if self.exit_code is None else [f"exit code {self.exit_code}"]
        if self.tests is not None:
            parts.append(f"{self.tests} test{'' if self.tests == 1 else 's'}")
        parts += [
            f"{n} {word}" for n, word in ((self.failed, "failed"), (self.skipped, "skipped")) if n
        ]
        if self.coverage is not None:
            parts.append(f"coverage {self.coverage:g} %")
        if self.why and self.why not in parts:
            parts.append(self.why)
        return f"{self.check}: {self.ran}" + (f": {', '.join(parts)}" if parts else "")
