"""The text kept beside a document, and quotes looked up in it.

A quote is compared as a careful reader would: line breaks, hyphenation at line ends, ligatures
and the shape of quotation marks and dashes are matters of layout and are ignored; a letter, a
capital or a digit is not.
"""

import re
import unicodedata
from collections.abc import Iterable

from activities.documents.model import DocumentError, Page

MIN_QUOTE = 12

_MARK = re.compile(r"\[page ([0-9]+)\]")
_ESCAPED = re.compile(r"\\*\[page [0-9]+\]")

_SHAPES = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u0060\u00b4", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff", None),
    }
)
_SOFT_HYPHEN = re.compile(r"\u00ad(?:[^\S\n]*\n\s*)?")
_HYPHEN = re.compile(r"(?<=\w)-([^\S\n]*\n\s*)?(?=\w)")
_SPACE = re.compile(r"\s+")

_HARD, _LINE_END = 1, 2


def render(pages: Iterable[Page]) -> str:
    """One text with a line `[page 3]` before each page. A line of a page that looks like such a
    mark gets a backslash before it. `parse` gives exactly the same pages back."""
    return "".join(f"[page {page.number}]\n{_escape(page.text)}\n" for page in pages)


def parse(text: str) -> list[Page]:
    """The pages of a text made by `render`. Raises `DocumentError` if it does not begin with a
    page mark."""
    if not text:
        return []
    pages: list[tuple[int, list[str]]] = []
    for line in text.removesuffix("\n").split("\n"):
        if mark := _MARK.fullmatch(line):
            pages.append((int(mark[1]), []))
        elif not pages:
            raise DocumentError("the text kept for the document has no page marks; extract it anew")
        else:
            pages[-1][1].append(line[1:] if _ESCAPED.fullmatch(line) else line)
    return [Page(number, "\n".join(lines)) for number, lines in pages]


def _escape(text: str) -> str:
    return "\n".join("\\" + line if _ESCAPED.fullmatch(line) else line for line in text.split("\n"))


def page_of(pages: Iterable[Page], number: int) -> Page:
    """The page with that number. Raises `DocumentError` naming the numbers there are."""
    there = list(pages)
    for page in there:
        if page.number == number:
            return page
    numbers = f"{there[0].number} to {there[-1].number}" if there else "none"
    raise DocumentError(f"there is no page {number}; the document's pages: {numbers}")


def contains_quote(page_text: str, quote: str) -> bool:
    """Whether the quote stands on the page, whole words and in this order.

    A quote of fewer than 12 characters must be the whole page: a word or two proves nothing.
    """
    return _Folded(page_text).contains(_Folded(quote))


def pages_with_quote(pages: Iterable[Page], quote: str) -> list[int]:
    """The numbers of all pages the quote stands on: to tell where it really is."""
    sought = _Folded(quote)
    return [page.number for page in pages if _Folded(page.text).contains(sought)]


class _Folded:
    """A text without its layout. Hyphens inside words are taken out and remembered by place:
    one at a line end may belong to the word or not, so it agrees with either reading."""

    def __init__(self, text: str) -> None:
        text = unicodedata.normalize("NFKC", _SOFT_HYPHEN.sub("", text)).translate(_SHAPES)
        text = text.strip()
        parts: list[str] = []
        self.hyphens: dict[int, int] = {}  # before which character: _HARD or _LINE_END
        length = start = 0
        for hyphen in _HYPHEN.finditer(text):
            part = _SPACE.sub(" ", text[start : hyphen.start()])
            parts.append(part)
            length += len(part)
            self.hyphens[length] = _HARD if hyphen[1] is None else _LINE_END
            start = hyphen.end()
        parts.append(_SPACE.sub(" ", text[start:]))
        self.letters = "".join(parts)

    def contains(self, quote: "_Folded") -> bool:
        sought = quote.letters
        if len(sought) + len(quote.hyphens) < MIN_QUOTE:
            return bool(sought) and sought == self.letters and self._agrees(quote, 0)
        at = self.letters.find(sought)
        while at >= 0:
            if self._whole_words(at, at + len(sought)) and self._agrees(quote, at):
                return True
            at = self.letters.find(sought, at + 1)
        return False

    def _agrees(self, quote: "_Folded", at: int) -> bool:
        inside = range(at + 1, at + len(quote.letters))
        mine = {
            place - at for place, kind in self.hyphens.items() if kind == _HARD and place in inside
        }
        if any(quote.hyphens.get(place) is None for place in mine):
            return False
        return all(
            kind == _LINE_END or at + place in self.hyphens for place, kind in quote.hyphens.items()
        )

    def _whole_words(self, start: int, end: int) -> bool:
        # "able to be read" is not said by a page that says "unable to be read".
        return not (self._within_word(start) or self._within_word(end))

    def _within_word(self, at: int) -> bool:
        if at <= 0 or at >= len(self.letters) or self.hyphens.get(at) == _HARD:
            return False
        left, right = self.letters[at - 1], self.letters[at]
        return (left.isdigit() and right.isdigit()) or (_cased(left) and _cased(right))


def _cased(letter: str) -> bool:
    # Scripts without capitals (Chinese, Thai) put no spaces between words either.
    return letter.lower() != letter.upper()
