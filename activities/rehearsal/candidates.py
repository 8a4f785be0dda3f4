"""Requirement candidates: as the tools show them, and as the rehearsal model keeps them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from activities.rehearsal.reading import Page

_LINE = re.compile(r"^\s*(C-\d+) · p\. ?(\d+) · ([^·]+?) · ([\d.]+) · (.*\S)\s*$")
_RULES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("legal", ("gdpr", "gobd", "dsgvo", "statut", "law", "gesetz", "regulation")),
    ("data", ("data", "record", "daten", "field", "document", "aufzeichnung")),
    ("quality", ("percent", "available", "availability", "seconds", "accura", "%")),
    ("constraint", ("must not", "shall not", "may not", "at most", "no more than", "darf nicht")),
    ("process", ("approve", "notify", "report", "within", "review", "days", "freigabe")),
)
ADDED = re.compile(r"(REQ-\d+)\b.*?(requirements/[\w-]+)", re.DOTALL)


@dataclass(frozen=True)
class Candidate:
    id: str
    page: int
    kind: str
    confidence: float
    text: str

    @property
    def line(self) -> str:
        """One line of `candidates/candidates.md`."""
        confidence = f"{self.confidence:.2f}"
        return f"{self.id} · p.{self.page} · {self.kind} · {confidence} · {self.text}"

    @property
    def type(self) -> str:
        """The type of requirement it would be."""
        words = f"{self.kind} {self.text}".lower()
        for name, signs in _RULES:
            if any(sign in words for sign in signs):
                return name
        return "constraint" if self.kind == "prohibition" else "functional"

    @property
    def quotes(self) -> list[str]:
        """What to cite, the whole first and then a part that is more likely to be found."""
        whole = self.text.rstrip("…").strip()
        part = " ".join(whole.split()[:8])
        return list(dict.fromkeys([whole, part]))


def parse_lines(lines: Iterable[str]) -> list[Candidate]:
    """The candidates among lines of text, in either of the two forms of a list."""
    return [
        Candidate(
            found.group(1),
            int(found.group(2)),
            found.group(3).strip(),
            _number(found.group(4)),
            found.group(5),
        )
        for line in lines
        if (found := _LINE.match(line))
    ]


def parse_json(page: Page) -> tuple[list[Candidate], int]:
    """The candidates whole on a page of a JSON file, and the line on which to read on."""
    text = page.text
    found: list[Candidate] = []
    end = at = 0
    decoder = json.JSONDecoder()
    while (at := text.find("{", at)) >= 0:
        try:
            value, after = decoder.raw_decode(text, at)
        except ValueError:
            at += 1
            continue
        found += _candidates_in(value)
        end = at = after
    if not found:
        return [], page.after
    return found, page.lines[0][0] + text.count("\n", 0, end) + 1


def _candidates_in(value: Any) -> Iterator[Candidate]:
    if isinstance(value, list):
        for item in value:
            yield from _candidates_in(item)
    elif isinstance(value, dict) and "text" in value and "page" in value:
        kind = value.get("modality") or value.get("kind") or "obligation"
        yield Candidate(
            str(value.get("id", "C-000")),
            int(value["page"]),
            str(kind),
            _number(value.get("confidence", 0.5)),
            " ".join(str(value["text"]).split()),
        )
    elif isinstance(value, dict):
        for item in value.values():
            yield from _candidates_in(item)


def _number(value: Any) -> float:
    try:
        return min(1.0, max(0.0, float(value)))
    except (TypeError, ValueError):
        return 0.5
