"""Text made shorter that keeps its two ends."""

from activities.text.safe_text import cut_middle


def test_the_middle_gives_way_to_a_line_that_may_say_how_much_it_was() -> None:
    assert cut_middle("abcdef", 6, "-") == "abcdef"
    assert cut_middle("abcdefg", 4, "[{gone} left out]") == "ab\n[3 left out]\nfg"
    assert cut_middle("x" * 5000, 3, "[{gone}]") == "x\n[4,998]\nx"
