"""How alike requirements and traces are, by their words or by what they mean."""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from activities.search.embedding import Embedder
from activities.search.vectors import Vectors

SIZE = 1 << 15
"""Places of the table that n-grams are counted in."""
BEAT = 500
_WORD = re.compile(r"\w+")
# Of what is stored: compared anew at each call, and seldom changed.
_known = Vectors()

Vector = NDArray[np.float32]


def likeness(
    text: str,
    others: Sequence[str],
    heartbeat: Callable[[], None] = lambda: None,
    by: Embedder | None = None,
) -> list[float]:
    """How alike each of the others is to the text, from 0 to 1; 1 for the same words in order.

    Without `by` the mean of two cosines: of the counts of words and pairs of neighbours, which see
    who does what to whom, and of the counts of three characters in a row, which see past
    inflection. Case, accents and punctuation do not count. With `by` the cosine of the embeddings
    that it makes, which sees paraphrases.

    Raises:
        EmbeddingsFailed: `by` does not answer.
    """
    if by is not None:
        return _by_meaning(text, others, heartbeat, by)
    words, grams = _counts(text)
    found = []
    for number, other in enumerate(others):
        if number % BEAT == 0:
            heartbeat()
        other_words, other_grams = _counts(other)
        alike = (_cosine(words, other_words) + _cosine(grams, other_grams)) / 2
        found.append(round(min(1.0, alike), 4))
    return found


def _by_meaning(
    text: str, others: Sequence[str], heartbeat: Callable[[], None], by: Embedder
) -> list[float]:
    if not others:
        return []
    own = by.embed([text])[0]
    rows = _known.of(others, by, len(own), heartbeat)
    return [round(min(1.0, max(0.0, float(row @ own))), 4) for row in rows]


def _counts(text: str) -> tuple[Vector, Vector]:
    folded = unicodedata.normalize("NFKD", text.casefold())
    words = _WORD.findall("".join(c for c in folded if not unicodedata.combining(c)))
    joined = f"  {' '.join(words)} " if words else ""
    codes = np.frombuffer(joined.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    width, prime = np.uint64(1 << 21), np.uint64(2_654_435_761)
    hashed = ((codes[:-2] * width + codes[1:-1]) * width + codes[2:]) * prime
    hashed >>= np.uint64(20)
    pairs = [f"{one} {other}" for one, other in pairwise(words)]
    numbers = np.array([zlib.crc32(term.encode()) for term in words + pairs], dtype=np.uint64)
    return _table(numbers), _table(hashed)


def _table(numbers: NDArray[np.uint64]) -> Vector:
    places = (numbers % SIZE).astype(np.int64)
    return np.bincount(places, minlength=SIZE).astype(np.float32)


def _cosine(one: Vector, other: Vector) -> float:
    size = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return float(one @ other) / size if size else 0.0
