"""Similarity of requirements and traces, by words or by meaning."""

import re
import unicodedata
import zlib
from collections.abc import Sequence
from hashlib import sha256
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from activities.checkpoints.journal import Cache
from activities.search.embedding import Embedder, Matrix, embed_texts

TABLE_SIZE = 1 << 15
"""Size of the hash table that n-grams are counted in."""
UNSEEN = 10
"""Virtual texts without any common word, added so that half of three texts is not yet frequent."""
MAX_RARITY = 20
"""Upper bound of a word's rarity: among thousands of texts, names and figures would otherwise get
all the weight, and thresholds would mean something else than among a dozen."""
_WORD = re.compile(r"\w+")
MAX_BYTES = 64 << 20
_embeddings: Cache[bytes, Matrix] = Cache(MAX_BYTES, lambda row: row.nbytes)
"""Embeddings of stored texts, which are compared at each call and seldom change."""

Vector = NDArray[np.float32]
SparseCounts = tuple[NDArray[np.int32], Vector]
"""Table positions that a text fills, and their counts."""


def compute_text_likeness(
    text: str, others: Sequence[str], by: Embedder | None = None, *, rarity: bool = False
) -> list[float]:
    """Return the similarity of each other text to `text`, from 0 to 1; 1 for the same words in
    order.

    Without `by`, it is the mean of two cosines: of counts of words and word pairs, which capture
    who does what to whom, and of counts of character trigrams, which ignore inflection. Case,
    accents and punctuation do not count. With `by`, it is the cosine of its embeddings, which
    capture paraphrases.

    Args:
        rarity: Whether terms common in these texts weigh less (inverse document frequency), so that
            "The operator shall" makes no texts alike, in any language.

    Raises:
        EmbeddingsFailed: `by` does not answer.
    """
    if by is not None:
        return _rank_likeness_by_meaning(text, others, by)
    words, grams = ([each] for each in _term_counts(text))
    for other in others:
        for counted, kind in zip(_term_counts(other), (words, grams), strict=True):
            kind.append(counted)
    both = zip(
        _cosine_likeness(words, rarity=rarity), _cosine_likeness(grams, rarity=rarity), strict=True
    )
    return [round(min(1.0, sum(pair) / 2), 4) for pair in both]


def _rank_likeness_by_meaning(text: str, others: Sequence[str], by: Embedder) -> list[float]:
    if not others:
        return []
    vector = by.embed([text])[0]
    rows = embed_cached(others, by, len(vector), _embeddings)
    return [round(min(1.0, max(0.0, float(row @ vector))), 4) for row in rows]


def embed_cached(
    texts: Sequence[str], by: Embedder, width: int, cache: Cache[bytes, Matrix]
) -> list[Matrix]:
    """Return the embedding of each text; `by` computes only those not in the cache.

    Args:
        width: Dimensions of an embedding; a model may change them under the same name.

    Raises:
        EmbeddingsFailed: `by` does not answer.
    """
    keys = [
        sha256(f"{by.name}\0{width}\0{text}".encode("utf-8", "surrogatepass")).digest()[:16]
        for text in texts
    ]
    vectors = {key: row for key in keys if (row := cache.get(key)) is not None}
    lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
    remaining = list(lacking.items())
    for start in range(0, len(remaining), by.batch):
        batch = remaining[start : start + by.batch]
        rows = embed_texts(by, [text for _, text in batch], width)
        vectors |= {
            key: cache.put(key, row.copy()) for (key, _), row in zip(batch, rows, strict=True)
        }
    return [vectors[key] for key in keys]


def _term_counts(text: str) -> tuple[SparseCounts, SparseCounts]:
    folded = unicodedata.normalize("NFKD", text.casefold())
    words = _WORD.findall("".join(c for c in folded if not unicodedata.combining(c)))
    joined = f"  {' '.join(words)} " if words else ""
    codes = np.frombuffer(joined.encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    width, spread = np.uint64(1 << 21), np.uint64(0x9E37_79B9_7F4A_7C15)
    hashed = ((codes[:-2] * width + codes[1:-1]) * width + codes[2:]) * spread
    # Only the highest bits of the product depend on all three characters.
    hashed >>= np.uint64(49)
    pairs = [f"{word} {other}" for word, other in pairwise(words)]
    numbers = np.array([zlib.crc32(term.encode()) for term in words + pairs], dtype=np.uint64)
    return _text_count_table(numbers), _text_count_table(hashed)


def _text_count_table(numbers: NDArray[np.uint64]) -> SparseCounts:
    places, counts = np.unique((numbers % TABLE_SIZE).astype(np.int32), return_counts=True)
    return places, counts.astype(np.float32)


def _cosine_likeness(texts: Sequence[SparseCounts], *, rarity: bool) -> list[float]:
    """Return the cosine of the first text with each of the others."""
    weights = np.ones(TABLE_SIZE, dtype=np.float32)
    if rarity:
        having = np.bincount(np.concatenate([places for places, _ in texts]), minlength=TABLE_SIZE)
        among = (len(texts) + UNSEEN) / np.maximum(having, 1)
        weights = np.log1p(np.minimum(among, MAX_RARITY)).astype(np.float32)
    (places, counts), *others = texts
    first_row = np.zeros(TABLE_SIZE, dtype=np.float32)
    first_row[places] = counts * weights[places]
    size = float(np.linalg.norm(first_row))
    scores = []
    for places, counts in others:
        row = counts * weights[places]
        sizes = size * float(np.linalg.norm(row))
        scores.append(float(row @ first_row[places]) / sizes if sizes else 0.0)
    return scores
