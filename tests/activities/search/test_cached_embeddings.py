"""Embeddings are asked for once, as long as there is room to keep them."""

import numpy as np
import pytest

from activities.checkpoints.journal import Cache
from activities.search.embedding import EmbeddingsFailed, Matrix
from activities.search.text_likeness import embed_cached

ROW = 4 * 4
"""Bytes of an embedding."""


class Counting:
    """Returns the lengths of texts as vectors, and records the texts."""

    batch = 2
    floor = 0.0

    def __init__(self, name: str = "m", fails_after: int = 100) -> None:
        self.name = name
        self.width = 4
        self.asked: list[list[str]] = []
        self._fails_after = fails_after

    def embed(self, texts: list[str]) -> Matrix:
        if len(self.asked) == self._fails_after:
            raise EmbeddingsFailed("away")
        self.asked.append(texts)
        rest = [0] * (self.width - 1)
        return np.array([[len(text), *rest] for text in texts], dtype=np.float32)


def room(most_bytes: int = 1000) -> Cache[bytes, Matrix]:
    return Cache(most_bytes, lambda row: row.nbytes)


def lengths(cache: Cache[bytes, Matrix], by: Counting, *texts: str, width: int = 4) -> list[int]:
    return [int(row[0]) for row in embed_cached(texts, by, width, cache)]


def test_each_text_is_asked_for_once_by_model_and_width() -> None:
    cache, by = room(), Counting()
    assert lengths(cache, by, "a", "bb", "a", "ccc") == [1, 2, 1, 3]
    assert by.asked == [["a", "bb"], ["ccc"]]
    assert lengths(cache, by, "bb", "dddd") == [2, 4]
    assert by.asked[2:] == [["dddd"]]
    with pytest.raises(EmbeddingsFailed, match="4 dimensions, expected 5"):
        lengths(cache, by, "a", width=5)
    by.width = 5
    by.asked.pop()
    assert lengths(cache, by, "a", width=5) == [1]
    assert by.asked[3:] == [["a"]]
    other = Counting("other")
    assert lengths(cache, other, "a") == [1]
    assert other.asked == [["a"]]


def test_more_texts_than_there_is_room_for_are_answered() -> None:
    cache, by = room(3 * ROW), Counting()
    lengths(cache, by, "a", "bb", "ccc")
    by.asked.clear()
    assert lengths(cache, by, "a", "ccc") == [1, 3]
    assert by.asked == []
    assert lengths(cache, by, "dddd", "a") == [4, 1]
    assert lengths(cache, by, *"abcdefgh") == [1] * 8


def test_what_was_answered_before_a_failure_is_not_asked_for_again() -> None:
    cache, by = room(), Counting(fails_after=1)
    with pytest.raises(EmbeddingsFailed):
        lengths(cache, by, "a", "bb", "ccc")
    again = Counting()
    assert lengths(cache, again, "a", "bb", "ccc") == [1, 2, 3]
    assert again.asked == [["ccc"]]
