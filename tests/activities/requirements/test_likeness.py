"""Likeness: what is the same is near 1, what has nothing in common near 0."""

from __future__ import annotations

import time

import pytest

from activities.requirements.likeness import likeness
from activities.search import EmbeddingsFailed, embedder
from config.sections import Embeddings
from tests.activities.search.endpoint import serving

TEXT = "Every invoice must be kept for ten years."


def test_the_same_words_are_alike_whatever_their_case_and_punctuation() -> None:
    assert likeness(TEXT, [TEXT, "every INVOICE must be kept, for ten years"]) == [1.0, 1.0]


def test_a_variant_is_nearer_than_another_subject() -> None:
    variant, related, other = likeness(
        TEXT,
        [
            "Every invoice must be kept for at least ten years.",
            "Invoices are to be retained ten years.",
            "The user shall log in with a password.",
        ],
    )
    assert variant > 0.85 > related > 0.3 > other


def test_umlauts_word_order_and_empty_texts() -> None:
    assert likeness("Prüfung der Belege", ["prufung der belege"]) == [1.0]
    [turned] = likeness("the buyer pays the seller", ["the seller pays the buyer"])
    assert 0.8 < turned < 1
    assert likeness(TEXT, ["", "!?"]) == [0.0, 0.0]
    assert likeness("", [""]) == [0.0]


def test_thousands_are_compared_in_moments_and_it_says_that_it_lives() -> None:
    beats: list[int] = []
    began = time.monotonic()
    found = likeness(TEXT, [f"{TEXT} {n}" for n in range(5000)], lambda: beats.append(1))
    assert time.monotonic() - began < 10
    assert len(found) == 5000
    assert len(beats) == 10


def test_embeddings_see_paraphrases_and_their_failure_is_told() -> None:
    with serving() as endpoint:
        by = embedder(Embeddings(model="m", base_url=endpoint.url))
        paraphrase, other = likeness("invoices kept", ["Storing bills", "A kettle"], by=by)
        assert paraphrase > 0.9
        assert other < 0.1
        assert likeness(TEXT, [], by=by) == []
        # What was asked for once is kept.
        asked = len(endpoint.texts)
        assert likeness("invoices kept", ["Storing bills"], by=by) == [paraphrase]
        assert endpoint.texts[asked:] == ["invoices kept"]
        endpoint.fails_after = 0
        with pytest.raises(EmbeddingsFailed):
            likeness(TEXT, [TEXT], by=by)
