"""Hybrid search: rankings by words and by meaning, fused."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from activities.checkpoints import Files
from activities.search import embedding
from activities.search.search_index import PassageRef, SearchIndex, with_search_index
from config.schema.model_settings import Embeddings

DEPTH = 50
"""Number of entries per ranking that count."""
DAMPING = 60
"""Constant of reciprocal rank fusion (Cormack, Clarke and Büttcher, 2009): 1 / (60 + rank)."""
QUERY_WORDS = 50
EMBEDDING_SECONDS = 300
"""Time limit for embedding in one search; the next search embeds the rest."""
TEXTS_HELD = 20_000
"""Passages loaded into memory at a time, about a kilobyte each."""
EVERYTHING = (b"", b"\xff" * 256)
_WORD = re.compile(r"[^\W_]+")
Ranked = TypeVar("Ranked", PassageRef, int)


@dataclass(frozen=True)
class PassageHit:
    path: str
    line: int
    text: str


@dataclass(frozen=True)
class SearchResults:
    """Passages, best first, and a note on what limited the search, if anything."""

    hits: list[PassageHit]
    note: str = ""


@dataclass(frozen=True)
class _QueryVector:
    """The query's vector, and the model name under which comparable vectors are stored."""

    vector: embedding.Matrix
    model: str
    floor: float
    """Likeness under which a passage has nothing to do with the query."""


def search_passages(
    folder: Path,
    files: Files,
    query: str,
    *,
    path: str = "",
    limit: int = 10,
    embeddings: Embeddings | None = None,
) -> SearchResults:
    """Return the passages of the files that best answer a query.

    Args:
        folder: Folder of the job's index; created if missing.
        files: The files to search; nothing else is ever found.
        query: Words, or a sentence.
        path: A file or folder of `files`, as in `Entry.path`; empty for all.
        limit: Maximum number of passages.
        embeddings: The endpoint; None for the local model, if installed.

    Raises:
        sqlite3.Error: The disk is full or cannot be written.
    """
    under = _searched_path_range(files, path)

    def search_index(index: SearchIndex) -> SearchResults:
        meaning, note = None, ""
        try:
            embedder = embedding.choose_embedder(embeddings)
            vector = embedder.embed([query])[0]
            meaning = _QueryVector(vector, f"{embedder.name} {len(vector)}", embedder.floor)
            note = _embed_missing(index, files, embedder, meaning, under)
        except embedding.EmbeddingsFailed as error:
            note = (
                _partial_search_note(str(error)) if meaning else f"Found by words alone: {error}."
            )
        with index.mirror_files(files):
            rankings = (
                [index.match_words(words, under, DEPTH)] if (words := fts_query(query)) else []
            )
            if meaning is not None:
                rankings.append(
                    _nearest_passages(meaning, *index.find_vectors(meaning.model, under))
                )
            best = fuse_rankings(rankings)[:limit]
            hits = [
                PassageHit(
                    place.path.decode("utf-8", "surrogateescape"),
                    place.line,
                    index.passage_text(place),
                )
                for place in best
            ]
            return SearchResults(hits, note)

    return with_search_index(folder, search_index)


def _embed_missing(
    index: SearchIndex,
    files: Files,
    embedder: embedding.Embedder,
    meaning: _QueryVector,
    under: tuple[bytes, bytes],
) -> str:
    """Embed passages without a vector; return a note if time ran out. Each batch is stored."""
    until = time.monotonic() + EMBEDDING_SECONDS
    while True:
        with index.mirror_files(files):
            lacking = index.without_vector(meaning.model, under, TEXTS_HELD)
        if not lacking:
            return ""
        for start in range(0, len(lacking), embedder.batch):
            if time.monotonic() > until:
                return _partial_search_note("there was not time enough to embed every passage")
            batch = lacking[start : start + embedder.batch]
            rows = embedding.embed_texts(embedder, [text for _, text in batch], len(meaning.vector))
            index.keep_vectors(meaning.model, [mark for mark, _ in batch], rows)


def _partial_search_note(why: str) -> str:
    return f"Found by words, and by meaning in part: {why}. Search again to go on."


def _searched_path_range(files: Files, path: str) -> tuple[bytes, bytes]:
    """Return the range of index paths for a file, or for a folder's content."""
    if not path:
        return EVERYTHING
    entry = files.entry(path)
    name = path.encode("utf-8", "surrogateescape")
    if entry is not None and entry.kind == "file":
        return name, name + b"\0"
    return name + b"/", name + b"0"


def search_words(query: str) -> list[str]:
    """Return the words of a query that say something, in lower case, each once."""
    return without_stop_words(list(dict.fromkeys(_WORD.findall(query.lower()))))


def fts_query(query: str) -> str:
    """Return an FTS5 query for any of the words, quoted so that none acts as an operator."""
    words = search_words(query)[:QUERY_WORDS]
    return " OR ".join(f'"{word}"' for word in words)


def _nearest_passages(
    meaning: _QueryVector, places: list[PassageRef], rows: embedding.Matrix
) -> list[PassageRef]:
    """Return the passages nearest in meaning, nearest first; none that is not near at all."""
    if not places:
        return []
    # Rounded, since the last bits depend on the machine's order of summation.
    scores = np.round(rows @ meaning.vector, 4)
    cut = -np.sort(-scores)[: DEPTH + 1][-1] if len(scores) > DEPTH else -np.inf
    near = [
        (-score, place.path, place.line, place.id, place)
        for score, place in zip(scores.tolist(), places, strict=True)
        if score >= cut and score > meaning.floor
    ]
    return [item[-1] for item in sorted(near, key=lambda item: item[:4])][:DEPTH]


def fuse_rankings(rankings: list[list[Ranked]]) -> list[Ranked]:
    """Fuse rankings, best first; ties go to the first ranking, so that exact terms come first."""
    scores: dict[Ranked, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (DAMPING + rank)
    return sorted(scores, key=lambda item: -round(scores[item], 9))


ENGLISH = """
a about all also an and any are as at be been but by can could did do does for from had has have how
if in into is it its may me my no not of on or our shall should so some such than that the their
them then there these they this those to us was we were what when where which who whom whose why
will with would you your
"""
GERMAN = """
aber alle als am an auch auf aus bei beim bis da damit das dass dem den der des die dies diese
dieser durch ein eine einem einen einer eines er es für hat hier ich ihr im in ist kann kein keine
man mit nach nicht noch nur ob oder sein sich sie sind so soll über um und uns unter vom von vor
war was welche welcher wenn wer werden wie wir wird wo zu zum zur
"""
LANGUAGES = [frozenset(words.split()) for words in (ENGLISH, GERMAN)]


def without_stop_words(words: Sequence[str]) -> list[str]:
    """Return the words, in lower case, without those of the language that has most of them; all of
    them if nothing else remains.
    """
    language = max(LANGUAGES, key=lambda each: sum(word in each for word in words))
    return [word for word in words if word not in language] or list(words)
