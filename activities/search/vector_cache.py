"""In-memory cache of the most recently used embeddings."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from hashlib import sha256

from activities.search.embedding import Embedder, Matrix, embed_texts

MAX_BYTES = 64 << 20


class VectorCache:
    """Embeddings keyed by embedder and text; thread-safe."""

    def __init__(self, most_bytes: int = MAX_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._cache: OrderedDict[bytes, Matrix] = OrderedDict()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str], by: Embedder, width: int) -> list[Matrix]:
        """Return the embedding of each text; `by` computes only those not in the cache.

        Args:
            width: Dimensions of an embedding; a model may change them under the same name.

        Raises:
            EmbeddingsFailed: `by` does not answer.
        """
        keys = [_vector_key(by.name, width, text) for text in texts]
        vectors = self._cached_vectors(keys)
        lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
        remaining = list(lacking.items())
        for start in range(0, len(remaining), by.batch):
            batch = remaining[start : start + by.batch]
            rows = embed_texts(by, [text for _, text in batch], width)
            computed = {key: row.copy() for (key, _), row in zip(batch, rows, strict=True)}
            self._store_vectors(computed)
            vectors |= computed
        return [vectors[key] for key in keys]

    def _cached_vectors(self, keys: Sequence[bytes]) -> dict[bytes, Matrix]:
        with self._lock:
            vectors = {key: self._cache[key] for key in keys if key in self._cache}
            for key in vectors:
                self._cache.move_to_end(key)
        return vectors

    def _store_vectors(self, vectors: dict[bytes, Matrix]) -> None:
        with self._lock:
            for key, row in vectors.items():
                if key not in self._cache:
                    self._bytes += row.nbytes
                    self._cache[key] = row
            while self._bytes > self._most:
                self._bytes -= self._cache.popitem(last=False)[1].nbytes


def _vector_key(model: str, width: int, text: str) -> bytes:
    return sha256(f"{model}\0{width}\0{text}".encode("utf-8", "surrogatepass")).digest()[:16]
