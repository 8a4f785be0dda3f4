"""Patterns that are searched for together."""

import pytest

from config.regexes import compile_cached_regex, regexes_that_may_match

PATTERNS = ("a+b", "(?i)KEY", "^x", "[0-9]{4,}")


@pytest.mark.parametrize("text", ["", "aab", "my key 12345", "x", "no\nx", "aab x key", "é 1234 é"])
def test_together_they_find_what_each_finds_alone(text: str) -> None:
    assert regexes_that_may_match(PATTERNS, text) == [
        one for one in PATTERNS if compile_cached_regex(one).search(text)
    ]


def test_no_pattern_is_in_any_text() -> None:
    assert regexes_that_may_match((), "text") == []


def test_patterns_too_large_for_one_pass_are_all_tried() -> None:
    large = tuple(rf"k{number}\pL{{300}}" for number in range(4))
    assert regexes_that_may_match(large, "text") == [*large]
