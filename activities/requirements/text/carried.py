"""How many of the passages that a requirement quotes its statement can say, and which."""

import re
from collections.abc import Mapping
from functools import lru_cache

from activities.requirements.text.meaning import StatementFacts

FEWEST = 3
"""Passages that any statement may bring together."""
LEAD_WORDS = 2
"""Words that say more than "the system shall"."""
_MARKER = re.compile(r"\s*(?:\(?\w{1,4}[.)]|\d+(?:\.\d+)+\.?)\s+")
_PART = re.compile(
    r"(?i)[.,:;!?](?!\w)|[\n/]|[^\w\s.,:;!?'\u2019\"%\u20ac$\u00b0-]"
    r"|\b(?:and|or|as well as|plus|und|oder|sowie|et|y|\u0438)\b"
)


def carried_passages(statement: str, passages: Mapping[str, str]) -> set[str]:
    """Return the keys of the passages that a statement covers.

    It covers as many as it has parts: clauses or entries of a list that differ in their words or
    numbers. Code cannot tell whether it says them, since other words, units and languages may say
    the same. Words and numbers decide only which of too many are left out. A statement without any
    covers nothing.
    """
    parts = {_facts(part) for part in _PART.split(statement)} - {frozenset()}
    said = frozenset[str]().union(*parts)
    ranked = sorted(passages, key=lambda key: -_share(_facts(passages[key]), said))
    return set(ranked[: max(len(parts), FEWEST)] if parts else ())


def says_something(lead_in: str) -> bool:
    """Whether the words before a list say something without its items."""
    return len(_facts(lead_in)) >= LEAD_WORDS


def repeats_sentence(statement: str, sentence: str) -> bool:
    """Whether a statement has all words and numbers of a sentence."""
    return bool(_facts(sentence)) and _facts(sentence) <= _facts(statement)


@lru_cache(16_384)
def _facts(text: str) -> frozenset[str]:
    """Return stems, names and numbers, without the number of the item or paragraph."""
    facts = StatementFacts(_MARKER.sub("", text, count=1) if _MARKER.match(text) else text)
    return frozenset((*facts.content, *facts.names, *facts.measures))


def _share(sought: frozenset[str], words: frozenset[str]) -> float:
    return len(sought & words) / max(1, len(sought))
