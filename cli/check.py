"""What a check of the doctor's is."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

CHECK_TIMEOUT = timedelta(seconds=5)
"""How long one may take."""


@dataclass(frozen=True)
class Check:
    """One line of the doctor's."""

    name: str
    ok: bool
    found: str
    remedy: str = ""

    def as_line(self) -> str:
        return f"{'✓' if self.ok else '✗'} {self.name}: {self.found}" + (
            f" → {self.remedy}" if self.remedy and not self.ok else ""
        )
