"""Hybrid search: the ranks by words and by meaning, fused."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from activities.checkpoints import Files
from activities.search.embedding import (
    Embedder,
    EmbeddingsFailed,
    Matrix,
    choose_embedder,
    embed_for,
)
from activities.search.index import PassageRef, SearchIndex, with_index
from config.schema.agent_sections import Embeddings

DEPTH = 50
"""Places of each ranking that count."""
DAMPING = 60
"""Of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): 1 / (60 + rank)."""
QUERY_WORDS = 50
EMBEDDING_SECONDS = 300
"""Longest time that one search embeds; what is left is done by the next."""
TEXTS_HELD = 20_000
"""Passages that are held in memory at a time, a kilobyte each."""
EVERYTHING = (b"", b"\xff" * 256)
_WORD = re.compile(r"[^\W_]+")
Ranked = TypeVar("Ranked", PassageRef, int)


@dataclass(frozen=True)
class PassageHit:
    """A passage that was found."""

    path: str
    line: int
    text: str


@dataclass(frozen=True)
class SearchResults:
    """Passages, best first, and what was missing for a better answer, if anything was."""

    hits: list[PassageHit]
    note: str = ""


@dataclass(frozen=True)
class _QueryVector:
    """The query as a vector, and what the vectors it is compared with are kept under."""

    vector: Matrix
    model: str


def search_passages(
    folder: Path,
    files: Files,
    query: str,
    *,
    path: str = "",
    limit: int = 10,
    embeddings: Embeddings | None = None,
    heartbeat: Callable[[], None],
) -> SearchResults:
    """The passages of the files that answer a query best.

    Args:
        folder: Where the job's index lies; made if need be.
        files: What is searched; nothing else is ever found.
        query: Words, or a sentence.
        path: A file or folder of `files`, as `Entry.path` has it; empty for all.
        limit: Most passages.
        embeddings: The endpoint; None takes the local model, if there is one.
        heartbeat: Called often while the index is brought up to date.

    Raises:
        sqlite3.Error: the disk is full or cannot be written.
    """
    under = _path_range(files, path)

    def search_index(index: SearchIndex) -> SearchResults:
        meaning, note = None, ""
        try:
            embedder = choose_embedder(embeddings)
            vector = embedder.embed([query])[0]
            meaning = _QueryVector(vector, f"{embedder.name} {len(vector)}")
            note = _embed_missing(index, files, embedder, meaning, under, heartbeat)
        except EmbeddingsFailed as error:
            note = _partial_note(str(error)) if meaning else f"Found by words alone: {error}."
        with index.mirror_files(files, heartbeat):
            rankings = (
                [index.match_words(words, under, DEPTH)] if (words := fts_query(query)) else []
            )
            if meaning is not None:
                rankings.append(
                    _nearest_passages(meaning, *index.find_vectors(meaning.model, under))
                )
            best = fuse_rankings(rankings)[:limit]
            return SearchResults([_passage_hit(index, place) for place in best], note)

    return with_index(folder, search_index)


def _embed_missing(
    index: SearchIndex,
    files: Files,
    embedder: Embedder,
    meaning: _QueryVector,
    under: tuple[bytes, bytes],
    heartbeat: Callable[[], None],
) -> str:
    """Embed what has no vector yet; a note if time was up. Each batch stays, whatever follows."""
    until = time.monotonic() + EMBEDDING_SECONDS
    while True:
        with index.mirror_files(files, heartbeat):
            lacking = index.without_vector(meaning.model, under, TEXTS_HELD)
        if not lacking:
            return ""
        for start in range(0, len(lacking), embedder.batch):
            heartbeat()
            if time.monotonic() > until:
                return _partial_note("there was not time enough to embed every passage")
            batch = lacking[start : start + embedder.batch]
            rows = embed_for(embedder, [text for _, text in batch], len(meaning.vector))
            index.keep_vectors(meaning.model, [mark for mark, _ in batch], rows)


def _partial_note(why: str) -> str:
    return f"Found by words, and by meaning in part: {why}. Search again to go on."


def _path_range(files: Files, path: str) -> tuple[bytes, bytes]:
    """The range of the paths of a file, or of a folder's content."""
    if not path:
        return EVERYTHING
    entry = files.entry(path)
    name = path.encode("utf-8", "surrogateescape")
    if entry is not None and entry.kind == "file":
        return name, name + b"\0"
    return name + b"/", name + b"0"


def fts_query(query: str) -> str:
    """The query for FTS5: any of its words, which in quotes have no meaning in its language."""
    words = list(dict.fromkeys(_WORD.findall(query.lower())))[:QUERY_WORDS]
    return " OR ".join(f'"{word}"' for word in words)


def _nearest_passages(
    meaning: _QueryVector, places: list[PassageRef], rows: Matrix
) -> list[PassageRef]:
    """The passages nearest in meaning, nearest first."""
    if not places:
        return []
    # Rounded: the last bits depend on how the machine adds up.
    scores = np.round(rows @ meaning.vector, 4)
    cut = -np.sort(-scores)[: DEPTH + 1][-1] if len(scores) > DEPTH else -np.inf
    near = [
        (-score, place.path, place.line, place.id, place)
        for score, place in zip(scores.tolist(), places, strict=True)
        if score >= cut and score > 0
    ]
    return [item[-1] for item in sorted(near, key=lambda item: item[:4])][:DEPTH]


def fuse_rankings(rankings: list[list[Ranked]]) -> list[Ranked]:
    """Best first; among equals those of the first ranking, so that an exact term comes first."""
    scores: dict[Ranked, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (DAMPING + rank)
    return sorted(scores, key=lambda item: -round(scores[item], 9))


def _passage_hit(index: SearchIndex, place: PassageRef) -> PassageHit:
    return PassageHit(
        place.path.decode("utf-8", "surrogateescape"), place.line, index.passage_text(place)
    )
