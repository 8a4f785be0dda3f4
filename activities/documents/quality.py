"""Judge whether a document was read well, from its text and from what its reader reports.

A text that looks broken is not refused, since part of it may be right. It is reported with its
pages, so that nobody takes missing text for a complete reading.
"""
# ruff: noqa: RUF001 - words of many languages

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from activities.documents.pages import Page, Quality, ReadingResult

MAX_NUMBERS = 20
"""Most page numbers in a sentence."""
_LEAST_LETTERS = 120
"""A page with fewer letters is not judged by its words."""
_LEAST_WORDS = 300
"""A document with fewer words is not judged by its language."""
_LONG_RUN = 32
"""Length of a suspicious run of letters. German compounds are shorter."""
_RUNS, _TORN, _UNKNOWN, _MIXED = 0.12, 0.1, 0.03, 0.06
"""Shares from which a page is suspicious: letters in long runs, torn words, unknown characters,
words of mixed scripts.
"""
_COMMON_WORDS = 0.025
"""Least share of common words in a text of any language."""
_BAD_SHARE = 0.03
"""Share of broken-looking pages from which the document counts as badly read."""

_WORD = re.compile(r"[^\W\d_]+")
# "Shippin g": a final letter set apart, which no language and few formulas have.
_TORN_WORD = re.compile(
    r"(?<=[a-z]{2} )[b-df-hj-np-tvx](?= )|(?<= [a-z] )[b-df-hj-np-tvx](?= [a-z] )"
)
_COMMON_IN = (
    "the of and to in is for a that be with on or as are der die und in den von zu das mit ist des "
    "im für nicht de la le les et des en du un une que el los las por con il di che e per una non "
    "o os do da em para het een van op dat te og att som på av till er at det på ja on ei se w na "
    "z i do nie się v je že sa az és egy hogy în şi la ve bir bu và là của các một yang dan untuk "
    "и в на не что с по на та що і је у за са και το της του η την de que per és"
)
_COMMON = frozenset(_COMMON_IN.split())


def assess_quality(reading: ReadingResult, *, by_language: bool = True) -> Quality:
    """Return how well a document was read.

    Args:
        by_language: Whether to doubt a text in no known language. Lists and programs are in
            none, so set this only where the reader may have mistaken letters.
    """
    suspects: dict[str, list[int]] = {}
    for page in reading.pages:
        for kind in _page_suspicions(page):
            suspects.setdefault(kind, []).append(page.number)
    warnings = [
        f"{_WARNINGS[kind]}: {_list_suspicious_pages(numbers)}."
        for kind, numbers in suspects.items()
    ]
    known = not by_language or _speaks_a_language(reading.pages)
    if not known:
        warnings.append("Hardly a common word of any known language is in the text.")
    if reading.guessed_encoding:
        warnings.append(
            f"It declares no encoding; it was taken for {reading.guessed_encoding}, a guess."
        )
    for kind, count in reading.omitted_passages.items():
        passages = "passage is" if count == 1 else "passages are"
        warnings.append(f"{count} {kind} {passages} left out of the text.")
    numbers = sorted({number for page_numbers in suspects.values() for number in page_numbers})
    # A cover is often a picture.
    covers = {1, len(reading.pages)} & set(suspects.get("unread", []))
    badly = not known or len(set(numbers) - covers) > _BAD_SHARE * len(reading.pages)
    return Quality(warnings, numbers, badly)


_WARNINGS = {
    "unread": "Could not be read",
    "runs": "Words run together",
    "torn": "Words are torn into letters",
    "unknown": "Characters have no meaning",
    "mixed": "Letters of several scripts are mixed in words",
}


def _page_suspicions(page: Page) -> list[str]:
    if page.unread:
        return ["unread"]
    text = page.text
    # A page may have millions of characters, but few distinct ones.
    characters = Counter(text)
    shown = sum(count for letter, count in characters.items() if not letter.isspace())
    unknown = sum(count for letter, count in characters.items() if _is_unreadable_letter(letter))
    suspicions = []
    if shown and unknown > max(2, _UNKNOWN * shown):
        suspicions.append("unknown")
    words = _WORD.findall(text)
    letters = sum(map(len, words))
    if letters < _LEAST_LETTERS:
        return suspicions
    spaced = [word for word in words if _letter_script(word[0]) not in _UNSPACED]
    if sum(len(word) for word in spaced if len(word) >= _LONG_RUN) > _RUNS * letters:
        suspicions.append("runs")
    if len(_TORN_WORD.findall(text)) > _TORN * len(words):
        suspicions.append("torn")
    if sum(map(_is_mixed_word, spaced)) > _MIXED * len(words):
        suspicions.append("mixed")
    return suspicions


_UNSPACED = {"CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "HANGUL"}
_MIXING = {"LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "DEVANAGARI", "THAI", "ARMENIAN"}


def _is_unreadable_letter(letter: str) -> bool:
    return letter == "\ufffd" or unicodedata.category(letter) in ("Co", "Cn") or letter in _CONTROL


_CONTROL = frozenset(map(chr, set(range(32)) - set(b"\t\n\v\f\r")))


@lru_cache(maxsize=4096)
def _letter_script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def _is_mixed_word(word: str) -> bool:
    if word.isascii():
        return False
    return len({_letter_script(letter) for letter in word} & _MIXING) > 1


def _speaks_a_language(pages: Iterable[Page]) -> bool:
    """Whether the words include common words.

    Assumed for scripts whose common words are not listed, and for short texts.
    """
    words: Counter[str] = Counter()
    for page in pages:
        if not page.unread:
            words.update(word.lower() for word in _WORD.findall(page.text))
    listed = {word: count for word, count in words.items() if _letter_script(word[0]) in _LISTED}
    total = sum(listed.values())
    letters = sum(len(word) * count for word, count in words.items())
    if (
        total < _LEAST_WORDS
        or sum(len(word) * count for word, count in listed.items()) < 0.85 * letters
    ):
        return True
    return sum(listed.get(word, 0) for word in _COMMON) > _COMMON_WORDS * total


_LISTED = {"LATIN", "CYRILLIC", "GREEK"}


def _list_suspicious_pages(numbers: list[int]) -> str:
    more = len(numbers) - MAX_NUMBERS
    shown = ", ".join(map(str, numbers[:MAX_NUMBERS])) + (f" and {more} more" if more > 0 else "")
    return f"page{'s'[: len(numbers) - 1]} {shown}"
