"""Texts are shortened between words."""

import pytest

from protocol.short_text import one_line, text_title_line


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


def test_a_title_is_the_first_line_with_words_beside_comments() -> None:
    assert text_title_line("<!-- tea.md -->\n\n# Brew tea\n\nGreen.") == "Brew tea"
    assert text_title_line("<!--\nof two\nlines --> Brew tea") == "Brew tea"
    assert text_title_line("<!-- was <!-- hints.md -->\nBrew tea") == "Brew tea"
    assert text_title_line("Brew tea <!-- green") == "Brew tea <!-- green"
    assert text_title_line("<!-- nothing else -->") == "<!-- nothing else -->"
