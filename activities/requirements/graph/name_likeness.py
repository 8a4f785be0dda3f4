"""How like two names are, by their words and by their runs of three characters."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=1000)
def normalised(text: str) -> str:
    """Lower case words without accents, one space between; `InvoiceHeader` is two words."""
    folded = unicodedata.normalize("NFKD", _HUMP.sub(" ", text).casefold())
    bare = "".join(char for char in folded if not unicodedata.combining(char))
    return " ".join(re.findall(r"[^\W_]+", bare))


def likeness(one: str, other: str) -> float:
    """Between normalised names: 1 for the same, 0 for nothing in common."""
    if one == other:
        return 1.0 if one else 0.0
    words = _shared(frozenset(one.split()), frozenset(other.split()))
    return max(words, _shared(_runs(one), _runs(other)))


def _shared(one: frozenset[str], other: frozenset[str]) -> float:
    # Dice's coefficient.
    return 2 * len(one & other) / (len(one) + len(other)) if one and other else 0.0


@lru_cache(maxsize=1000)
def _runs(text: str) -> frozenset[str]:
    padded = f"  {text} "
    return frozenset(padded[at : at + 3] for at in range(len(padded) - 2))
