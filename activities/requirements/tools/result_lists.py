"""Lists and tallies in the answers of the tools that collect results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

MAX_NAMED = 60


def shorten_list(entries: list[str], most: int = MAX_NAMED) -> list[str]:
    more = len(entries) - most
    return [*entries[:most], f"and {more:,} more"] if more > 0 else entries


def tally_words(words: Iterable[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(Counter(words).items()))
