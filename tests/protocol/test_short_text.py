"""Texts are shortened between words."""

from __future__ import annotations

import pytest

from protocol.short_text import one_line


@pytest.mark.parametrize(
    ("text", "limit", "cut"),
    [
        ("green  tea\nis hot", 14, "green tea is…"),
        ("greentealeaves and water", 10, "greenteal…"),
        ("green", 10, "green"),
    ],
)
def test_a_line_ends_with_a_whole_word(text: str, limit: int, cut: str) -> None:
    assert one_line(text, limit) == cut
