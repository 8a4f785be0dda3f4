"""Numbers of list items and notes."""

import re

_ROMAN = [(1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"),
          (40, "xl"), (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i")]  # fmt: skip
_BULLETS = {"bullet", "none"}
_NOTE_NUMBER = re.compile(r"\s*\d{1,3}\s*")
_SENTENCE_END = re.compile(r"[.!?\u2026][\"'\u201d\u2019\u00bb)]? *$")
MAX_FORMATTED_NUMBER = 9999
"""A larger number is shown in digits, whatever the format."""


def format_list_number(number: int, kind: str) -> str:
    """Return a number in one of Word's formats; in digits for an unknown format.

    Args:
        kind: Such as `decimal`, `lowerLetter`, `upperRoman`.
    """
    if kind in _BULLETS:
        return ""
    if not 0 < number <= MAX_FORMATTED_NUMBER:
        return str(number)
    if kind in ("lowerLetter", "upperLetter"):
        # After z comes aa, then bb.
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if kind == "upperLetter" else letters
    if kind in ("lowerRoman", "upperRoman"):
        roman = _roman_numeral(number)
        return roman.upper() if kind == "upperRoman" else roman
    if kind == "decimalZero":
        return f"{number:02d}"
    if kind == "ordinal":
        return f"{number}{_ordinal_suffix(number)}"
    return str(number)


def _roman_numeral(number: int) -> str:
    text = ""
    for value, letters in _ROMAN:
        text += letters * (number // value)
        number %= value
    return text


def _ordinal_suffix(number: int) -> str:
    if number % 100 in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")


def is_possible_note_number(text: str) -> bool:
    """Whether the text, such as that of a link, can be a note's number."""
    return bool(_NOTE_NUMBER.fullmatch(text))


def may_note_number_follow(text: str) -> bool:
    """Whether a sentence ends at the end of the text."""
    return bool(_SENTENCE_END.search(text[-10:]))
