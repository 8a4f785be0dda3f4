"""Terms that a document mentions, with the pages they are on."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from activities.documents import Page
from activities.text.indicators import shipped_indicators

MentionKind = Literal["regulation", "abbreviation", "defined term", "name", "term"]
MAX_TERM_CHARACTERS = 80
_ABBREVIATION = re.compile(r"\b[A-ZÄÖÜ][A-ZÄÖÜ0-9]{1,9}\b")
_QUOTED = re.compile(r"[\"“„»]([^\"“”„«»\n]{3,60})[\"”“«]")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÄÖÜ][\w-]+(?:[ \t][A-ZÄÖÜ][\w-]+)+\b", re.MULTILINE)
_NOUN = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÄÖÜ][a-zäöüß-]{4,}\b", re.MULTILINE)
_HEADING_SHARE = 0.6


@dataclass(frozen=True)
class Mention:
    """A term, its count, and the numbers of the first pages it is on."""

    text: str
    kind: MentionKind
    count: int
    pages: tuple[int, ...]


def find_mentions(pages: Iterable[Page]) -> list[Mention]:
    """Return the terms of a document, most frequent first; the same pages give the same list.

    Regulations come from the shipped indicators. Other terms are found by form: abbreviations,
    quoted words, consecutive capitalised words, and capitalised words that occur twice.
    """
    counts: Counter[str] = Counter()
    sorts: dict[str, MentionKind] = {}
    where: dict[str, dict[int, None]] = {}
    for page in pages:
        for sort, text in _find_mentioned_terms(page.text):
            term = " ".join(text.split())[:MAX_TERM_CHARACTERS]
            counts[term] += 1
            sorts.setdefault(term, sort)
            where.setdefault(term, {})[page.number] = None
    selected = [
        Mention(term, sorts[term], count, tuple(where[term])[:10])
        for term, count in counts.items()
        if count > 1 or sorts[term] != "term"
    ]
    return sorted(selected, key=lambda mention: (-mention.count, mention.text))


def _find_mentioned_terms(text: str) -> Iterable[tuple[MentionKind, str]]:
    phrases = shipped_indicators()
    for line in text.splitlines():
        for hit in phrases.find(line):
            if hit.regulation:
                yield "regulation", hit.words
        words = line.split()
        capitals = sum(word[:1].isupper() for word in words)
        if len(words) > 1 and capitals > _HEADING_SHARE * len(words):
            continue  # in a heading, capitals mean nothing
        yield from (("abbreviation", term) for term in _ABBREVIATION.findall(line))
        yield from (("defined term", term) for term in _QUOTED.findall(line))
        named = _NAME.findall(line)
        yield from (("name", term) for term in named)
        inside = " ".join(named)
        yield from (("term", term) for term in _NOUN.findall(line) if term not in inside)
