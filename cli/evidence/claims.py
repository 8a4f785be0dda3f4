"""What a verification says: claims, what each rests on, and what was found against them."""

from dataclasses import dataclass, field
from typing import Any

MOST_FOUND = 20


@dataclass
class Claim:
    """One claim about an archive."""

    name: str
    says: str
    rests_on: str
    seen: str = ""
    """What was checked, with figures; empty if nothing could be."""
    found: list[str] = field(default_factory=list)
    """What contradicts it."""
    unchecked: list[str] = field(default_factory=list)
    """What could not be checked, and why."""

    @property
    def verdict(self) -> str:
        """`fails`, `holds`, or `unchecked`."""
        return "fails" if self.found else "holds" if self.seen else "unchecked"

    def as_data(self) -> dict[str, Any]:
        return {
            "claim": self.name,
            "verdict": self.verdict,
            "says": self.says,
            "rests_on": self.rests_on,
            "seen": self.seen,
            "found": self.found,
            "unchecked": self.unchecked,
        }

    def lines(self) -> list[str]:
        """Return the claim for people."""
        text = [f"{self.verdict:<9}  {self.name}: {self.says}"]
        text += [f"{'':11}rests on {self.rests_on}"]
        text += [f"{'':11}seen: {self.seen}"] if self.seen else []
        text += [f"{'':11}FOUND: {why}" for why in self.found[:MOST_FOUND]]
        if len(self.found) > MOST_FOUND:
            text.append(f"{'':11}and {len(self.found) - MOST_FOUND} more")
        return text + [f"{'':11}not checked: {why}" for why in self.unchecked[:MOST_FOUND]]
