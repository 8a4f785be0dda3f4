"""Requirement candidates, as `candidates/candidates.md` lists them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(
    r"^- (?:(\S.*?): )?(C-\d+) · p\.(\d+)(?:, [^·]*)? · ([^·]+?) · ([\d.]+) · (.*\S)\s*$"
)
_REST = re.compile(r" \[goes on on p\.\d+: (.*)\]$")
_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("legal", ("gdpr", "gobd", "dsgvo", "statut", "law", "gesetz", "regulation")),
    ("data", ("data", "record", "daten", "field", "document", "aufzeichnung")),
    ("quality", ("percent", "available", "availability", "seconds", "accura", "%")),
    ("constraint", ("must not", "shall not", "may not", "at most", "no more than", "darf nicht")),
    ("process", ("approve", "notify", "report", "within", "review", "days", "freigabe")),
)


MIN_QUOTE_CHARACTERS = 12


@dataclass(frozen=True)
class CandidateLine:
    id: str
    page: int
    force: str
    confidence: float
    text: str
    document: str = ""
    """The document, if the list names one for each candidate."""

    @property
    def type(self) -> str:
        """The type of requirement that it would become."""
        words = f"{self.force} {self.text}".lower()
        for name, signs in _RULES:
            if any(sign in words for sign in signs):
                return name
        return "constraint" if self.force == "must not" else "functional"

    @property
    def quotes(self) -> list[tuple[int, str]]:
        """Pages and words to cite; both parts of a sentence that continues on the next page."""
        rest = _REST.search(self.text)
        parts = [(self.page, _REST.sub("", self.text).strip())]
        # Skip a remainder of a word or two: it proves nothing.
        return (
            [*parts, (self.page + 1, rest[1])]
            if rest and len(rest[1]) >= MIN_QUOTE_CHARACTERS
            else parts
        )

    @property
    def statement(self) -> str:
        """The complete sentence."""
        return _REST.sub(r" \1", self.text)

    @property
    def short_part(self) -> str:
        """A shorter part, which a search is more likely to match."""
        return " ".join(self.text.split()[:8])


def parse_candidate_lines(lines: Iterable[str]) -> list[CandidateLine]:
    """Parse the candidates in lines of the list."""
    return [
        CandidateLine(
            match[2], int(match[3]), match[4].strip(), float(match[5]), match[6], match[1] or ""
        )
        for line in lines
        if (match := _LINE.match(line))
    ]
