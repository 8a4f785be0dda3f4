"""Embeddings that are asked for again and again: the latest used stay in this process's memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256

from activities.search.embedding import Embedder, Matrix, embed_for

MOST_BYTES = 64 << 20


class Vectors:
    """Embeddings by what made them and the text; for all threads."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[bytes, Matrix] = OrderedDict()
        self._lock = threading.Lock()

    def embed(
        self, texts: Sequence[str], by: Embedder, width: int, heartbeat: Callable[[], None]
    ) -> list[Matrix]:
        """The embedding of each text; `by` is asked for those alone that are not kept.

        Args:
            width: Numbers of an embedding; a model of the same name may come to give others.
            heartbeat: Called before each request.

        Raises:
            EmbeddingsFailed: `by` does not answer.
        """
        keys = [_key(by.name, width, text) for text in texts]
        found = self._known(keys)
        lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        left = list(lacking.items())
        for at in range(0, len(left), by.batch):
            heartbeat()
            batch = left[at : at + by.batch]
            rows = embed_for(by, [text for _, text in batch], width)
            made = {key: row.copy() for (key, _), row in zip(batch, rows, strict=True)}
            self._keep(made)
            found |= made
        return [found[key] for key in keys]

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, Matrix]:
        with self._lock:
            found = {key: self._kept[key] for key in keys if key in self._kept}
            for key in found:
                self._kept.move_to_end(key)
        return found

    def _keep(self, made: dict[bytes, Matrix]) -> None:
        with self._lock:
            for key, row in made.items():
                if key not in self._kept:
                    self._bytes += row.nbytes
                    self._kept[key] = row
            while self._bytes > self._most:
                self._bytes -= self._kept.popitem(last=False)[1].nbytes


def _key(model: str, width: int, text: str) -> bytes:
    return sha256(f"{model}\0{width}\0{text}".encode("utf-8", "surrogatepass")).digest()[:16]
