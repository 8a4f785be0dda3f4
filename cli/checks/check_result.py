"""A check of `starter.py doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

CHECK_TIMEOUT = timedelta(seconds=5)
"""Time limit of one check."""


@dataclass(frozen=True)
class Check:
    """One line of the doctor's output."""

    name: str
    ok: bool
    found: str
    remedy: str = ""

    def as_line(self) -> str:
        return f"{'✓' if self.ok else '✗'} {self.name}: {self.found}" + (
            f" → {self.remedy}" if self.remedy and not self.ok else ""
        )
