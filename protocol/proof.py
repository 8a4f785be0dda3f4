"""How a feature is proved: the commands that the system runs for its checks, and their results.

Neither an agent's claim nor an earlier run replaces the system's own run.
"""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from protocol.data_model import Data
from protocol.short_text import count_noun

Check = Literal["unit", "api", "browser", "db"]
"""How a feature is tested; `browser` is a test through a user interface."""


PROOF_GUARD = "proof"
"""Guard name reported when the system's own runs refuse a job's end."""


class CheckCommand(Data):
    """The test command of a check. It runs at the top of the repository."""

    command: str = Field(min_length=1, max_length=1000)
    min_tests: int = Field(1, ge=1, le=1_000_000)
    """Least number of tests that it must run, without skipped ones."""
    seconds: int = Field(600, ge=1, le=3600)
    report: str = Field("", max_length=300, pattern=r"^(?:[\w-][\w.-]*/)*(?:[\w-][\w.-]*)?$")
    """Path of the JUnit XML file that a command accepted by its exit code writes; its tests are
    counted. A known runner needs none."""
    exit_code_only: bool = False
    """Whether a person accepts the exit code of a command that is no known test runner. Only the
    project's file sets it."""
    by_person: bool = False
    """Whether the project's file names the command, so that its options are settled. The system
    sets it."""


def proof_command_without_cd(command: str, folder: str) -> str:
    """Drop a leading `cd <folder> &&`: agents see the repository's top as a folder."""
    first, joined, rest = command.strip().partition("&&")
    words = first.split()
    is_change_to_folder = words[:1] == ["cd"] and words[1:] in (
        [folder],
        [f"{folder}/"],
        [f"./{folder}"],
    )
    return rest.strip() if joined and is_change_to_folder else command.strip()


def _proof_command_from_text(value: Any) -> Any:
    return {"command": value} if isinstance(value, str) else value


Tests = dict[Check, Annotated[CheckCommand, BeforeValidator(_proof_command_from_text)]]
"""The command of each check; a plain text is a command with the defaults."""


class AcceptedRun(Data):
    """What a command ran when it was last accepted; later runs may not run less."""

    command: str
    tests: int
    skipped: int = 0
    expected: int = 0
    """Tests that were expected to fail, and did."""
    seconds: int = 600
    report: str = ""
    by_person: bool = False
    feature: str = ""
    """The newest feature that it proved."""

    @property
    def check(self) -> CheckCommand:
        return CheckCommand(
            command=self.command, seconds=self.seconds, report=self.report, by_person=self.by_person
        )


class Proof(Data):
    """One run of a check."""

    check: Check
    ran: str
    """The command, or the tool call for a check that no command can perform."""
    passed: bool
    exit_code: int | None = None
    """None for a tool, and for a command that was killed."""
    tests: int | None = None
    """Number of tests run, without skipped ones."""
    failed: int = 0
    skipped: int = 0
    expected: int = 0
    """Number of tests that failed as they announce."""
    exit_code_only: bool = False
    """Whether nothing but the exit code is known, which a person accepted."""
    shown: list[str] = Field(default_factory=list)
    """What decides the result and is not as it was accepted, for the tester and for people."""
    coverage: float | None = None
    """Covered percentage of the code; None when the run did not print it."""
    why: str = ""
    end: str = ""
    """The end of the output, or the head of a tool's answer."""
    cut: bool = False
    commit: str = ""
    asked_by: str = ""
    """Id of the handoff at whose end it ran."""
    phase: int = 0
    step: int = 0
    """The job's step at the time of the run."""

    @property
    def line(self) -> str:
        """`unit: python3 -m pytest -q: exit code 0, 28 tests, 1 skipped`."""
        return f"{self.check}: {self.ran}" + (f": {self.outcome}" if self.outcome else "")

    @property
    def outcome(self) -> str:
        """`exit code 0, 28 tests, 1 skipped`."""
        parts = [] if self.exit_code is None else [f"exit code {self.exit_code}"]
        if self.tests is not None:
            parts.append(count_noun(self.tests, "test"))
        parts += [
            f"{n} {word}" for n, word in ((self.failed, "failed"), (self.skipped, "skipped")) if n
        ]
        if self.exit_code_only:
            parts.append("exit code only")
        if self.expected:
            parts.append(count_noun(self.expected, "expected failure"))
        if self.coverage is not None:
            parts.append(f"coverage {self.coverage:g} %")
        if self.why and self.why not in parts:
            parts.append(self.why)
        parts += self.shown
        return ", ".join(parts)
