"""Similarity of two names, by words and by three-character runs."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=1000)
def normalise_name(text: str) -> str:
    """Return lower-case words without accents, single-spaced; `InvoiceHeader` is two words."""
    folded = unicodedata.normalize("NFKD", _HUMP.sub(" ", text).casefold())
    bare = "".join(char for char in folded if not unicodedata.combining(char))
    return " ".join(re.findall(r"[^\W_]+", bare))


def name_likeness(first: str, second: str) -> float:
    """Return the similarity of normalised names: 1 for equal, 0 for nothing in common."""
    if first == second:
        return 1.0 if first else 0.0
    words = _name_dice_coefficient(frozenset(first.split()), frozenset(second.split()))
    return max(
        words, _name_dice_coefficient(_name_character_runs(first), _name_character_runs(second))
    )


def _name_dice_coefficient(first: frozenset[str], second: frozenset[str]) -> float:
    return 2 * len(first & second) / (len(first) + len(second)) if first and second else 0.0


@lru_cache(maxsize=1000)
def _name_character_runs(text: str) -> frozenset[str]:
    padded = f"  {text} "
    return frozenset(padded[start : start + 3] for start in range(len(padded) - 2))
