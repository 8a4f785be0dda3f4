"""Requirement candidates, as `candidates/candidates.md` lists them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(
    r"^- (?:(\S.*?): )?(C-\d+) · p\.(\d+)(?:, [^·]*)? · ([^·]+?) · ([\d.]+) · (.*\S)\s*$"
)
_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("legal", ("gdpr", "gobd", "dsgvo", "statut", "law", "gesetz", "regulation")),
    ("data", ("data", "record", "daten", "field", "document", "aufzeichnung")),
    ("quality", ("percent", "available", "availability", "seconds", "accura", "%")),
    ("constraint", ("must not", "shall not", "may not", "at most", "no more than", "darf nicht")),
    ("process", ("approve", "notify", "report", "within", "review", "days", "freigabe")),
)


@dataclass(frozen=True)
class Candidate:
    id: str
    page: int
    force: str
    confidence: float
    text: str
    document: str = ""
    """Where the list names it with each."""

    @property
    def type(self) -> str:
        """The type of requirement it would be."""
        words = f"{self.force} {self.text}".lower()
        for name, signs in _RULES:
            if any(sign in words for sign in signs):
                return name
        return "constraint" if self.force == "must not" else "functional"

    @property
    def quotes(self) -> list[str]:
        """What to cite, the whole first and then a part that is more likely to be found."""
        whole = self.text.rstrip("…").strip()
        part = " ".join(whole.split()[:8])
        return list(dict.fromkeys([whole, part]))


def parse_lines(lines: Iterable[str]) -> list[Candidate]:
    """The candidates among lines of the list."""
    return [
        Candidate(
            found[2], int(found[3]), found[4].strip(), float(found[5]), found[6], found[1] or ""
        )
        for line in lines
        if (found := _LINE.match(line))
    ]
