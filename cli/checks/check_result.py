"""A check of `starter.py doctor`."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

CHECK_TIMEOUT = timedelta(seconds=5)
"""Time limit of one check."""


@dataclass(frozen=True)
class CheckResult:
    """One line of the doctor's output."""

    name: str
    ok: bool
    found: str
    remedy: str = ""
    off: bool = False
    """Whether nothing is wrong, but something is missing that only some jobs need."""

    def as_line(self) -> str:
        mark = "·" if self.off else "✓" if self.ok else "✗"
        return f"{mark} {self.name}: {self.found}" + (
            f" → {self.remedy}" if self.remedy and not self.ok else ""
        )


@dataclass(frozen=True)
class ConfigFinding:
    """The result for an agent, or for a file besides agents."""

    name: str
    summary: str = ""
    problem: str = ""
    """File, key, the value and what was expected; empty if nothing is wrong."""
    data: dict[str, Any] | None = None

    @property
    def ok(self) -> bool:
        return not self.problem

    def as_line(self) -> str:
        return f"✓ {self.name}: {self.summary}" if self.ok else f"✗ {self.name}: {self.problem}"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            **(self.data or {}),
            **({"problem": self.problem} if self.problem else {}),
        }
