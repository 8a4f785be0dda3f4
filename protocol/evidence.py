"""What the system saw done: for a todo, for a list, and as evidence with a scope item."""

from collections.abc import Collection, Iterable
from typing import Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.short_text import count_noun, one_line

MOST_SEEN = 12
"""Most files, commands and looks that are kept by name, the newest of each."""
NAME_CHARACTERS = 120
HELD = ": held"
"""Ends the line of a condition that held."""
SHOWN = 4
"""Most files of evidence that are shown, and most that workflow memory keeps."""
SHOWN_CHECKS = 2
CLAIM_CHARACTERS = 300
EvidenceKind = Literal["work", "check", "look", "list", "on the spot", "person"]
"""What completed an item: work or a check of its own todo, a look that the todo's notes claim, the
list of its phase, a small correction before the end of the job, or a person."""


def is_condition(check: str) -> bool:
    """Whether the line of a check is that of a condition that held, and of no command."""
    return check.endswith(HELD)


class SeenWork(Data):
    """Calls with an effect, and looks, since a todo became the current one or a phase began."""

    calls: int = 0
    files: list[str] = Field(default_factory=list)
    commands: list[str] = Field(default_factory=list)
    """Commands and tools without a file of their own, such as `pytest -q: exit code 0`."""
    looks: int = 0
    """Successful calls that changed nothing."""
    runs: int = 0
    """Those of them that ran a program, such as tests, rather than read something."""
    looked: list[str] = Field(default_factory=list)
    """What they read: paths, else names of tools."""
    kept: list[str] = Field(default_factory=list)
    """Files of `notes/` in which findings were written down."""

    @property
    def is_idle(self) -> bool:
        return not (self.calls or self.looks)

    def add_work(self, files: Iterable[str], command: str = "", gone: Collection[str] = ()) -> None:
        """Count one call with an effect; of its files, those that are `gone` are kept last."""
        self.calls += 1
        names = [*self.files, *files]
        self.files = _newest(sorted(names, key=lambda name: name not in gone))
        if command:
            self.commands = _newest([*self.commands, command])

    def add_look(self, name: str, command: str = "", *, ran: bool = False) -> None:
        self.looks += 1
        self.runs += int(ran)
        self.looked = _newest([*self.looked, name])
        if command:
            self.commands = _newest([*self.commands, command])


class Evidence(Data):
    """Why an item counts as completed."""

    kind: EvidenceKind
    phase: int
    todo: int = 0
    calls: int = 0
    files: list[str] = Field(default_factory=list)
    checks: list[str] = Field(default_factory=list)
    commit: str = ""
    claim: str = ""
    """What the agent says that it looked at; nobody has checked it."""
    by: str = ""

    @property
    def line(self) -> str:
        """`phase 2, todo 3: 2 calls; output/a.md; pytest -q: exit code 0`."""
        where = f"phase {self.phase}" + (f", todo {self.todo}" if self.todo else "")
        if self.kind == "list":
            where += ", its list"
        if self.kind == "on the spot":
            where += ", on the spot"
        parts = [count_noun(self.calls, "call")] if self.calls else []
        parts += [", ".join(self.files[-SHOWN:])] if self.files else []
        parts += self.checks[-SHOWN_CHECKS:]
        parts += [f"the agent says: {self.claim}"] if self.claim else []
        parts += [f"completed by {self.by}"] if self.by else []
        return f"{where}: {'; '.join(parts)}"

    @classmethod
    def of(cls, kind: EvidenceKind, phase: int, seen: SeenWork, commit: str) -> "Evidence":
        return cls(
            kind=kind,
            phase=phase,
            calls=seen.calls,
            files=seen.files,
            checks=seen.commands,
            commit=commit,
        )

    @property
    def slim(self) -> "Evidence":
        """The evidence as workflow memory has it: what its line shows."""
        return self.model_copy(
            update={"files": self.files[-SHOWN:], "checks": self.checks[-SHOWN_CHECKS:]}
        )

    @property
    def of_step(self) -> "Evidence":
        return self.model_copy(update={"files": [], "checks": [], "claim": ""})


def _newest(names: list[str]) -> list[str]:
    short = [one_line(name, NAME_CHARACTERS) for name in names]
    return list(dict.fromkeys(reversed(short)))[:MOST_SEEN][::-1]
