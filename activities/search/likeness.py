"""How alike texts are: by their embeddings where there are any, else by their letters."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from activities.search.embedding import Embedder, EmbeddingsFailed

Counts = tuple[NDArray[np.uint64], NDArray[np.float64]]


def likeness(text: str, others: list[str], by: Embedder | None = None) -> list[float]:
    """For each of the others, how like the text it is: from 0, not at all, to 1, the same.

    By the cosine of their embeddings, made by `by`; without it, or when it fails, by the cosine
    of their counts of three letters in a row, without regard to case and spacing. Paraphrases
    are recognised by embeddings alone.
    """
    if not others:
        return []
    if by is not None:
        try:
            return _by_meaning(text, others, by)
        except EmbeddingsFailed:
            pass
    own = _letters(text)
    return [_cosine(own, _letters(other)) for other in others]


def _by_meaning(text: str, others: list[str], by: Embedder) -> list[float]:
    own = by.embed([text])[0]
    rows = [
        row @ own
        for at in range(0, len(others), by.batch)
        for row in by.embed(others[at : at + by.batch])
    ]
    return [round(min(1.0, max(0.0, float(score))), 4) for score in rows]


def _letters(text: str) -> Counts:
    """What three characters there are in a row, and how often each."""
    plain = f"  {' '.join(text.casefold().split())} "
    codes = np.frombuffer(plain.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.uint64)
    # A character has 21 bits, so three of them are one whole number.
    shift = np.uint64(21)
    threes = ((codes[:-2] << shift | codes[1:-1]) << shift) | codes[2:]
    kinds, counts = np.unique(threes, return_counts=True)
    return kinds, counts.astype(np.float64)


def _cosine(one: Counts, other: Counts) -> float:
    _, left, right = np.intersect1d(one[0], other[0], assume_unique=True, return_indices=True)
    both = float(one[1][left] @ other[1][right])
    lengths = float(np.linalg.norm(one[1]) * np.linalg.norm(other[1]))
    return round(min(1.0, both / lengths), 4) if lengths else 0.0
