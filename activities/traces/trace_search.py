"""Finds traces for a situation by words and, if available, by embeddings.

Words are indexed in this process's memory, so search is the same with every database. The first
search reads all rows of the store, later ones only new rows.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Row

from activities.checkpoints import Root
from activities.search.embedding import EmbeddingsFailed, Matrix, choose_embedder, embed_texts
from activities.search.hybrid_search import DEPTH, fts_query, fuse_rankings
from activities.stores import stored_traces as rows
from activities.stores.relational_store import SECONDS, RelationalStore
from activities.traces.trace_text import searchable_trace_text
from config.schema.model_settings import Embeddings

EMBEDDED_AT_A_TIME = 256
"""Limit of one search; the remaining traces are found by words."""
EMBEDDING_SECONDS = 15.0
"""Time limit for one response of the endpoint and for the whole embedding: a phase waits for
this, and search by words works without it."""
MIN_LIKENESS = 0.2
"""Minimum similarity of a trace found by meaning."""
RowFilter = Callable[[Row[Any]], bool]
_indices: dict[str, "TraceIndex"] = {}
_making = threading.Lock()


@dataclass(frozen=True)
class TraceSearchScope:
    """Who searches; limits which traces are visible."""

    job: str
    agent: str
    project: str = ""
    everything: bool = False
    """For people, who may see every trace."""

    def may_see(self, row: Row[Any]) -> bool:
        """Return whether a trace is visible: universal, of the same project, or without a project
        of the same agent."""
        if self.everything or row.scope == "universal":
            return True
        if self.project:
            return bool(row.project == self.project)
        return not row.project and bool(row.agent == self.agent)


class TraceIndex:
    """Index of a store's traces by words and vectors; one per store in a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.clear()

    def clear(self) -> None:
        self.rows: dict[int, Row[Any]] = {}
        self.newest, self.model = 0, ""
        self.vectors: dict[int, Matrix] = {}
        self.base = sqlite3.connect(":memory:", check_same_thread=False)
        self.base.execute(
            "CREATE VIRTUAL TABLE words USING fts5"
            "(text, content='', tokenize='porter unicode61 remove_diacritics 2')"
        )

    def add_rows(self, entries: Sequence[Row[Any]]) -> None:
        new = [row for row in entries if row.id not in self.rows]
        self.base.executemany(
            "INSERT INTO words (rowid, text) VALUES (?, ?)",
            [(row.id, searchable_trace_text(row)) for row in new],
        )
        # Update known rows too, since their scope may have changed.
        self.rows.update((row.id, row) for row in entries)
        self.newest = max(self.newest, *(row.id for row in new)) if new else self.newest

    def belongs_elsewhere(self, entries: Sequence[Row[Any]]) -> bool:
        """Return whether the rows are from another store: a known id has another key."""
        return any(row.id in self.rows and self.rows[row.id].key != row.key for row in entries)

    def rank_by_words(self, query: str, fits: RowFilter, most: int) -> list[int]:
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
        ids = [id for id in self.vectors if id in self.rows and fits(self.rows[id])]
        if not ids:
            return []
        scores = np.round(np.stack([self.vectors[id] for id in ids]) @ vector, 4)
        far: list[float] = (-scores).tolist()
        ranked = sorted(zip(far, ids, strict=True))
        return [id for score, id in ranked[:most] if -score >= MIN_LIKENESS]


def find_traces(
    root: Root,
    reader: TraceSearchScope,
    query: str,
    limit: int,
    *,
    embeddings: Embeddings | None = None,
    is_wanted: RowFilter = lambda _: True,
    seconds: float = SECONDS,
) -> list[Row[Any]]:
    store, most = RelationalStore(root), max(DEPTH, limit)

    def is_candidate(row: Row[Any]) -> bool:
        return reader.may_see(row) and is_wanted(row)

    with _making:
        index = _indices.setdefault(store.address, TraceIndex())
    # Before taking the lock, so that others need not wait for the endpoint.
    embedded = _embed_trace_query(store, reader, query, embeddings) if embeddings else None
    with index.lock:
        _update_trace_index(store, index, seconds)
        rankings = [index.rank_by_words(query, is_candidate, most)]
        if embedded:
            model, vector = embedded
            _update_trace_vectors(store, index, model)
            rankings.append(index.rank_by_meaning(vector, is_candidate, most))
        return [index.rows[id] for id in fuse_rankings(rankings)[:limit]]


def _update_trace_index(store: RelationalStore, index: TraceIndex, seconds: float) -> None:
    entries, count = store.read(
        lambda c: (rows.newer_traces(c, index.newest), rows.count_traces(c)), seconds=seconds
    )
    replaced = index.belongs_elsewhere(entries)
    index.add_rows(entries)
    if replaced or len(index.rows) > count:
        index.clear()
        index.add_rows(store.read(lambda c: rows.newer_traces(c, 0), seconds=seconds))


def _embed_trace_query(
    store: RelationalStore, reader: TraceSearchScope, query: str, embeddings: Embeddings
) -> tuple[str, Matrix] | None:
    """Return the model's name and the query's vector; None without embeddings.

    Also embeds traces that lack a vector, but only those visible to the reader: the agent's
    endpoint must not receive what others recorded.
    """
    until = time.monotonic() + EMBEDDING_SECONDS
    try:
        client = choose_embedder(embeddings, EMBEDDING_SECONDS)
        vector = client.embed([query])[0]
    except EmbeddingsFailed:
        return None
    model = f"{client.name} {len(vector)}"
    lacking = store.read(
        lambda c: rows.traces_without_vector(
            c, model, reader.project, reader.agent, EMBEDDED_AT_A_TIME
        )
    )
    for start in range(0, len(lacking), client.batch):
        if time.monotonic() > until:
            break
        batch = lacking[start : start + client.batch]
        try:
            halves = embed_texts(
                client, [searchable_trace_text(row) for row in batch], len(vector)
            ).astype("<f2")
        except EmbeddingsFailed:
            break
        vectors = {row.id: half.tobytes() for row, half in zip(batch, halves, strict=True)}
        store.run(lambda c, vectors=vectors: rows.store_trace_vectors(c, model, vectors))  # type: ignore[misc]
    return model, vector


def _update_trace_vectors(store: RelationalStore, index: TraceIndex, model: str) -> None:
    if index.model != model:
        index.model, index.vectors = model, {}
    for id, data in store.read(
        lambda c: rows.read_stored_trace_vectors(c, model, len(index.vectors))
    ).items():
        index.vectors[id] = np.frombuffer(data, dtype="<f2").astype(np.float32)
