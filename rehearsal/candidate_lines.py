"""Requirement candidates, as `candidates/candidates.md` lists them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(
    r"^- (?:(\S.*?): )?(C-\d+) · p\.(\d+)(?:, [^·]*)? · ([^·]+?) · ([\d.]+) · (.*\S)\s*$"
)
_REST = re.compile(r" \[goes on on p\.\d+: (.*)\]$")
_LEAD = re.compile(r" \[after p\.(\d+): (.*)\]$")
_NUMBER = re.compile(r"^- (\S.*?): number (\S.*?) · p\.\d+ · (.*\S)\s*$")
_SAMPLED = re.compile(r"^- (S-\d+) · p\.\d+ · .*?( \[binds, .*\])?$")
_SAMPLE_OF = re.compile(r"^To be read, for judge_sample\(path='([^']+)', marks\):$")
_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("legal", ("gdpr", "gobd", "dsgvo", "statut", "law", "gesetz", "regulation")),
    ("data", ("data", "record", "daten", "field", "document", "aufzeichnung")),
    ("quality", ("percent", "available", "availability", "seconds", "accura", "%")),
    ("constraint", ("must not", "shall not", "may not", "at most", "no more than", "darf nicht")),
    ("process", ("approve", "notify", "report", "within", "review", "days", "freigabe")),
)


@dataclass(frozen=True)
class CandidateLine:
    id: str
    page: int
    force: str
    confidence: float
    text: str
    document: str = ""
    """The document, if the list names one for each candidate."""
    lead: tuple[int, str] | None = None
    """Page and words of the sentence before its list."""

    @property
    def type(self) -> str:
        """The type of requirement that it would become."""
        words = f"{self.force} {self.text}".lower()
        for name, signs in _RULES:
            if any(sign in words for sign in signs):
                return name
        return "constraint" if self.force == "must not" else "functional"

    @property
    def statement(self) -> str:
        """The complete sentence, with the one before its list."""
        lead = f"{self.lead[1]} " if self.lead else ""
        return lead + _REST.sub(r" \1", self.text)

    @property
    def short_part(self) -> str:
        """A shorter part, which a search is more likely to match."""
        return " ".join(self.text.split()[:8])


def parse_candidate_lines(lines: Iterable[str]) -> list[CandidateLine]:
    passages = []
    for line in lines:
        if match := _LINE.match(line):
            text = match[6]
            lead = _LEAD.search(text)
            passages.append(
                CandidateLine(
                    match[2],
                    int(match[3]),
                    match[4].strip(),
                    float(match[5]),
                    text[: lead.start()] if lead else text,
                    match[1] or "",
                    (int(lead[1]), lead[2]) if lead else None,
                )
            )
    return passages


def parse_number_lines(lines: Iterable[str]) -> list[tuple[str, str, str]]:
    """Return document, number and words of each open entry in lines of the list."""
    return [
        (match[1], match[2], _REST.sub(r" \1", match[3]).replace(" ¶ ", " "))
        for line in lines
        if (match := _NUMBER.match(line))
    ]


def parse_sample_lines(lines: Iterable[str]) -> dict[str, dict[str, bool]]:
    """Return the sampled sentences that are to be read, by document: whether each binds, by id."""
    samples: dict[str, dict[str, bool]] = {}
    path = ""
    for line in lines:
        if begins := _SAMPLE_OF.match(line):
            path = begins[1]
        elif (match := _SAMPLED.match(line)) and path:
            samples.setdefault(path, {})[match[1]] = bool(match[2])
    return samples
