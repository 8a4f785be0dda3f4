"""Traces found by the situation at hand: by words and, where there are any, by embeddings.

The words are indexed in this process's memory, from the store's rows: the first search reads them
all, each further one only what came since. So it is the same with every database.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Row

from activities.checkpoints import Root
from activities.search.embedding import EmbeddingsFailed, Matrix, choose_embedder, embed_for
from activities.search.hybrid_search import DEPTH, fts_query, fuse_rankings
from activities.stores import traces as rows
from activities.stores.engine import SECONDS, RelationalStore
from activities.traces.trace_text import search_text
from config.schema.agent_sections import Embeddings

EMBEDDED_AT_A_TIME = 256
"""Traces that one search embeds at most; those that are left are found by words."""
EMBEDDING_SECONDS = 15.0
"""For one answer of the endpoint, and after so long no more is asked: words find as well, and a
phase that is about to begin waits for this."""
MIN_LIKENESS = 0.2
"""Likeness below which a trace is not near in meaning."""
RowFilter = Callable[[Row[Any]], bool]
"""Whether a trace is looked for at all."""
_indices: dict[str, TraceIndex] = {}
_making = threading.Lock()


@dataclass(frozen=True)
class TraceReader:
    """Who searches: what a trace of another project or agent is not for."""

    job: str
    agent: str
    project: str = ""
    everything: bool = False
    """For people, who may see all."""

    def may_see(self, row: Row[Any]) -> bool:
        """Traces of the own project; without one those of the same agent; universal ones."""
        if self.everything or row.scope == "universal":
            return True
        if self.project:
            return bool(row.project == self.project)
        return not row.project and bool(row.agent == self.agent)


class TraceIndex:
    """The words of a store's traces; one for each store in a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        """Begin from nothing."""
        self.rows: dict[int, Row[Any]] = {}
        self.newest, self.model = 0, ""
        self.vectors: dict[int, Matrix] = {}
        self.base = sqlite3.connect(":memory:", check_same_thread=False)
        self.base.execute(
            "CREATE VIRTUAL TABLE words USING fts5"
            "(text, content='', tokenize='porter unicode61 remove_diacritics 2')"
        )

    def add_rows(self, entries: Sequence[Row[Any]]) -> None:
        """Enter those that are not here yet."""
        new = [row for row in entries if row.id not in self.rows]
        self.base.executemany(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            [(row.id, search_text(row)) for row in new],
        )
        # All of them: their scope may have changed.
        self.rows.update((row.id, row) for row in entries)
        self.newest = max(self.newest, *(row.id for row in new)) if new else self.newest

    def belongs_elsewhere(self, entries: Sequence[Row[Any]]) -> bool:
        """Whether these are another store's: what has a number here has another key there."""
        return any(row.id in self.rows and self.rows[row.id].key != row.key for row in entries)

    def rank_by_words(self, query: str, fits: RowFilter, most: int) -> list[int]:
        """The best by BM25 of those that fit."""
        match_query = fts_query(query)
        if not match_query:
            return []
        cursor = self.base.execute(
            "SELECT rowid FROM words WHERE words MATCH ? ORDER BY round(bm25(words), 9), rowid",
            (match_query,),
        )
        best: list[int] = []
        for (id,) in cursor:
            if fits(self.rows[id]):
                best.append(id)
                if len(best) == most:
                    break
        return best

    def rank_by_meaning(self, vector: Matrix, fits: RowFilter, most: int) -> list[int]:
        """The nearest of those that fit."""
        ids = [id for id in self.vectors if id in self.rows and fits(self.rows[id])]
        if not ids:
            return []
        scores = np.round(np.stack([self.vectors[id] for id in ids]) @ vector, 4)
        far: list[float] = (-scores).tolist()
        ranked = sorted(zip(far, ids, strict=True))
        return [id for score, id in ranked[:most] if -score >= MIN_LIKENESS]


def find_traces(
    root: Root,
    reader: TraceReader,
    query: str,
    limit: int,
    *,
    embeddings: Embeddings | None = None,
    is_wanted: RowFilter = lambda _: True,
    seconds: float = SECONDS,
) -> list[Row[Any]]:
    """The traces that fit a situation best, best first.

    Args:
        root: Whose store is searched.
        reader: Who asks.
        query: The situation, in words.
        limit: Most traces.
        embeddings: The agent's endpoint; None searches by words alone.
        is_wanted: Which of those that the reader may see are looked for.
        seconds: How long the store may take for one try.

    Raises:
        StoreUnavailableError: the store does not answer.
    """
    store, most = RelationalStore(root), max(DEPTH, limit)

    def is_candidate(row: Row[Any]) -> bool:
        return reader.may_see(row) and is_wanted(row)

    with _making:
        index = _indices.setdefault(store.address, TraceIndex())
    # Before the lock: others need not wait for an endpoint.
    embedded = _embed_query(store, reader, query, embeddings) if embeddings else None
    with index.lock:
        _update_index(store, index, seconds)
        rankings = [index.rank_by_words(query, is_candidate, most)]
        if embedded:
            model, vector = embedded
            _update_vectors(store, index, model)
            rankings.append(index.rank_by_meaning(vector, is_candidate, most))
        return [index.rows[id] for id in fuse_rankings(rankings)[:limit]]


def _update_index(store: RelationalStore, index: TraceIndex, seconds: float) -> None:
    """Take in what came since; all anew once traces were removed, or the store replaced."""
    entries, count = store.read(
        lambda c: (rows.newer_traces(c, index.newest), rows.count_traces(c)), seconds=seconds
    )
    replaced = index.belongs_elsewhere(entries)
    index.add_rows(entries)
    if replaced or len(index.rows) > count:
        index.clear()
        index.add_rows(store.read(lambda c: rows.newer_traces(c, 0), seconds=seconds))


def _embed_query(
    store: RelationalStore, reader: TraceReader, query: str, embeddings: Embeddings
) -> tuple[str, Matrix] | None:
    """The model and the query's vector; traces that lack theirs get it. None: none to be had.

    Only those that the reader may see: his endpoint is not for what others noted.
    """
    until = time.monotonic() + EMBEDDING_SECONDS
    try:
        client = choose_embedder(embeddings, EMBEDDING_SECONDS)
        vector = client.embed([query])[0]
    except EmbeddingsFailed:
        return None
    model = f"{client.name} {len(vector)}"
    lacking = store.read(
        lambda c: rows.without_vector(c, model, reader.project, reader.agent, EMBEDDED_AT_A_TIME)
    )
    for start in range(0, len(lacking), client.batch):
        if time.monotonic() > until:
            break
        batch = lacking[start : start + client.batch]
        try:
            halves = embed_for(client, [search_text(row) for row in batch], len(vector)).astype(
                "<f2"
            )
        except EmbeddingsFailed:
            break
        vectors = {row.id: half.tobytes() for row, half in zip(batch, halves, strict=True)}
        store.run(lambda c, vectors=vectors: rows.keep_vectors(c, model, vectors))  # type: ignore[misc]
    return model, vector


def _update_vectors(store: RelationalStore, index: TraceIndex, model: str) -> None:
    if index.model != model:
        index.model, index.vectors = model, {}
    for id, data in store.read(lambda c: rows.read_vectors(c, model, len(index.vectors))).items():
        index.vectors[id] = np.frombuffer(data, dtype="<f2").astype(np.float32)
