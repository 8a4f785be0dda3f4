"""Text made shorter: titles, and texts that keep their two ends."""

from __future__ import annotations

from activities.text.safe_text import cut_middle, text_title_line


def test_the_middle_gives_way_to_a_line_that_may_say_how_much_it_was() -> None:
    assert cut_middle("abcdef", 6, "-") == "abcdef"
    assert cut_middle("abcdefg", 4, "[{gone} left out]") == "ab\n[3 left out]\nfg"
    assert cut_middle("x" * 5000, 3, "[{gone}]") == "x\n[4,998]\nx"


def test_a_title_is_the_first_line_with_words_beside_comments() -> None:
    assert text_title_line("<!-- tea.md -->\n\n# Brew tea\n\nGreen.") == "Brew tea"
    assert text_title_line("<!--\nof two\nlines --> Brew tea") == "Brew tea"
    assert text_title_line("<!-- nothing else -->") == "<!-- nothing else -->"
