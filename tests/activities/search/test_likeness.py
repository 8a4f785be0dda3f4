"""Likeness: duplicates score high, paraphrases by embeddings alone."""

from __future__ import annotations

import pytest

from activities.search import embedder, likeness
from config.schema import Embeddings
from tests.activities.search.endpoint import serving

TEXT = "Every invoice must be kept for ten years."
SAME = "every  INVOICE must be kept for ten years."
NEAR = "Each invoice must be kept for at least ten years."
OTHER = "The kettle is made of copper."


def test_by_letters() -> None:
    same, near, other = likeness(TEXT, [SAME, NEAR, OTHER])
    assert same == 1
    assert 0.6 < near < 1
    assert other < 0.3


@pytest.mark.parametrize("text", ["", "a", "\U0001f600", "\ud83d"])
def test_any_text_can_be_compared(text: str) -> None:
    assert likeness(text, [text, TEXT])[0] == 1
    assert likeness(text, []) == []


def test_by_meaning() -> None:
    with serving() as endpoint:
        by = embedder(Embeddings(model="m", base_url=endpoint.url))
        paraphrase, other = likeness("invoices kept", ["Storing bills", "A kettle"], by)
        assert paraphrase > 0.9
        assert other < 0.1
        endpoint.fails_after = 0
        assert likeness(TEXT, [SAME], by) == [1]
