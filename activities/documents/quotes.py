"""Quotes looked up in the pages of a document.

A quote is compared as a careful reader would: line breaks, hyphenation at line ends, ligatures
and the shape of quotation marks and dashes are matters of layout and are ignored; a letter, a
capital or a digit is not.
"""

import re
import unicodedata
from collections.abc import Iterable

from activities.documents.pages import Page

MIN_QUOTE = 12

_SHAPES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u0060\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", None),
    }
)
_SOFT_HYPHEN = re.compile(r"\u00ad(?:[^\S\n]*\n\s*)?")
_HYPHEN = re.compile(r"(?<=\w)-(?:([^\S\n]*\n\s*)|([^\S\n]+))?(?=\w)")
_SPACE = re.compile(r"\s+")
# Chinese and Japanese put no spaces between words, so that a line end there is none either.
_NO_SPACES = r"[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uff65\U00020000-\U0003ffff]"
# Only from its first space on, or a long run of them would be gone through for each.
_SPACE_OF_LAYOUT = re.compile(rf"(?<={_NO_SPACES})\s+|(?<!\s)\s+(?={_NO_SPACES})")
# What is set above or below the line is no further digit of the number before it.
_RAISED = re.compile(r"(?<=\d)(?=[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u215f])")

_POINT_IN_NUMBER = re.compile(r"\d[.,']\d")

_HARD, _LINE_END, _HANGING = 1, 2, 3


def contains_quote(page_text: str, quote: str) -> bool:
    """Whether the quote stands on the page, whole words and in this order.

    A quote of fewer than 12 characters must be a whole line, cell of a table or page: a word or two
    out of a sentence prove nothing.
    """
    return _stands(page_text, _Folded(quote))


def is_short(quote: str) -> bool:
    """Whether the quote counts only where it is the whole of something."""
    return _Folded(quote).short


def pages_with_quote(pages: Iterable[Page], quote: str) -> list[int]:
    """The numbers of all pages the quote stands on: to tell where it really is."""
    sought = _Folded(quote)
    return [page.number for page in pages if _stands(page.text, sought)]


def _stands(page_text: str, sought: "_Folded") -> bool:
    if not sought.short:
        return _Folded(page_text).contains(sought)
    lines = page_text.split("\n")
    parts = {page_text, *lines, *(cell for line in lines for cell in line.split(" | "))}
    # What is much longer cannot be the same without its layout.
    return any(_Folded(part).is_(sought) for part in parts if len(part.strip()) < 4 * MIN_QUOTE)


class _Folded:
    """A text without its layout. Hyphens inside words are taken out and remembered by place, those
    before a space ("Ein- und Ausgang") with the space: one at a line end may belong to the word or
    not, and have a space behind it or not, so it agrees with every reading."""

    def __init__(self, text: str) -> None:
        text = _RAISED.sub("^", _SPACE_OF_LAYOUT.sub("", _SOFT_HYPHEN.sub("", text)))
        text = unicodedata.normalize("NFKC", text).translate(_SHAPES).strip()
        parts: list[str] = []
        self.hyphens: dict[int, int] = {}  # before which character: which of the three
        length = start = 0
        for hyphen in _HYPHEN.finditer(text):
            part = _SPACE.sub(" ", text[start : hyphen.start()])
            parts.append(part)
            length += len(part)
            kind = _LINE_END if hyphen[1] else _HANGING if hyphen[2] else _HARD
            self.hyphens[length] = kind
            start = hyphen.end()
        parts.append(_SPACE.sub(" ", text[start:]))
        self.letters = "".join(parts)

    @property
    def short(self) -> bool:
        return len(self.letters) + len(self.hyphens) < MIN_QUOTE

    def is_(self, quote: "_Folded") -> bool:
        same = quote.letters == self.letters
        return same and bool(self.letters) and self._agrees(quote, 0)

    def contains(self, quote: "_Folded") -> bool:
        sought = quote.letters
        at = self.letters.find(sought)
        while at >= 0:
            if self._whole_words(at, at + len(sought)) and self._agrees(quote, at):
                return True
            at = self.letters.find(sought, at + 1)
        return False

    def _agrees(self, quote: "_Folded", at: int) -> bool:
        inside = range(at + 1, at + len(quote.letters))
        mine = {place - at: kind for place, kind in self.hyphens.items() if place in inside}
        return all(
            _LINE_END in (kinds := (mine.get(place), quote.hyphens.get(place)))
            or kinds[0] == kinds[1]
            for place in mine.keys() | quote.hyphens.keys()
        )

    def _whole_words(self, start: int, end: int) -> bool:
        # "able to be read" is not said by a page that says "unable to be read".
        return not (self._within_word(start) or self._within_word(end))

    def _within_word(self, at: int) -> bool:
        if at <= 0 or at >= len(self.letters) or self.hyphens.get(at) in (_HARD, _HANGING):
            return False
        before, after = self.letters[max(0, at - 2) : at], self.letters[at : at + 2]
        # "500 EUR" is not said by a page that says "1,500 EUR".
        if _POINT_IN_NUMBER.search(before + after):
            return True
        left, right = before[-1], after[0]
        return (left.isdigit() and right.isdigit()) or (_cased(left) and _cased(right))


def _cased(letter: str) -> bool:
    # Scripts without capitals (Chinese, Thai) put no spaces between words either.
    return letter.lower() != letter.upper()
