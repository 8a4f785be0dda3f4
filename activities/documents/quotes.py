"""Find quotes in the pages of a document.

Quotes are compared as a careful reader would: white space, hyphens at line ends, ligatures and the
shape of quotation marks and dashes are layout and are ignored; letters, capitals and digits are
not. The page's own passage is recorded, never the quote as it was typed.
"""

import re
import unicodedata
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from heapq import nlargest

from activities.documents.pages import Page

# Before these words, a hyphen at a line end stands for a part of a later word: "Ein-\nund Ausgang".
_HANGING = r"(?!\s*(?:und|oder|bzw|sowie|bis|and|or)\b)"
_HYPHENATED = re.compile(rf"(\w)(?:\u00ad|[-\u2010]{_HANGING})[^\S\n]*\n\s*(?=[a-zäöüß])")
_HYPHEN_KEPT = re.compile(rf"(\w[-\u2010\u2011]){_HANGING}[^\S\n]*\n\s*(?=\w)")


def fold_line_ends(text: str) -> str:
    """Join all lines into one, and words that were divided at line ends."""
    return " ".join(_HYPHEN_KEPT.sub(r"\1", _HYPHENATED.sub(r"\1", text)).split())


MIN_QUOTE = 12
MIN_LIKENESS = 0.5
"""Share of a quote's words from which a passage is shown as near."""
PART_CHARACTERS = 200_000
"""A longer page is compared in parts, so that a document of one page does not fill the memory."""
PASSAGE_CHARACTERS = 1_000
MAX_COMPARED_PARTS = 3
MAX_COMPARED_PAGES = 5
"""Most pages whose words are compared one by one."""
MAX_SHOWN_CHARACTERS = 300

_SHAPES = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2039\u203a\u0060\u00b4", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
}
_IGNORED = frozenset("\u00ad\u200b\u200c\u200d\u2060\ufeff")
_HYPHENS = frozenset("-\u2010\u2011\u2012\u2013\u2014\u2015\u2212")
# A superscript or subscript is no further digit of the number before it.
_RAISED = re.compile(r"[\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u2089\u2150-\u215f]")
_LINE_END = re.compile(r"[^\S\n]*\n")
_SPACE = re.compile(r"\s+")
_POINT_IN_NUMBER = re.compile(r"\d[.,']\d")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Span:
    """A passage of a page, as offsets of its letters without layout."""

    start: int
    end: int

    def touches(self, other: "Span") -> bool:
        """Whether the two share as many letters as a quote needs, or all of the shorter one."""
        shared = min(self.end, other.end) - max(self.start, other.start)
        return shared >= min(MIN_QUOTE, self.end - self.start, other.end - other.start) > 0


class FoldedPage:
    """A page's text without layout, for looking up many quotes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded = _fold(text)

    def find_spans(self, quote: str) -> list[Span]:
        """Return every place of the quote, as whole words in this order."""
        sought = _fold(quote)
        if not sought.letters:
            return []
        length = len(sought.letters)
        return [Span(start, start + length) for start in self._folded.find_starts(sought)]

    def find_places(self, quote: str) -> list[tuple[int, int]]:
        """Return begin and end of every place of the quote in the page's text as it is."""
        return [
            self._folded.original_place(span.start, span.end) for span in self.find_spans(quote)
        ]

    def find_passage(self, quote: str) -> str | None:
        """Return the page's words for the quote, on one line; None if it is not there.

        A quote of fewer than 12 characters must be a whole line, table cell or page: a word or two
        from a sentence prove nothing.
        """
        sought = _fold(quote)
        if sought.is_short:
            return _line_equal_to_quote(self._text, sought)
        start = next(self._folded.find_starts(sought), None)
        if start is None:
            return None
        return fold_line_ends(self._folded.original_text(start, start + len(sought.letters)))


def find_quoted_passage(page_text: str, quote: str) -> str | None:
    """Like `FoldedPage.find_passage`, for a single quote."""
    return FoldedPage(page_text).find_passage(quote)


def contains_quote(page_text: str, quote: str) -> bool:
    return find_quoted_passage(page_text, quote) is not None


def is_short_quote(quote: str) -> bool:
    """Whether the quote is so short that it must be a whole line, cell or page."""
    return _fold(quote).is_short


def pages_with_quote(pages: Iterable[Page], quote: str) -> list[int]:
    return [page.number for page in pages if contains_quote(page.text, quote)]


def nearest_quoted_passage(pages: Iterable[Page], quote: str) -> tuple[int, str] | None:
    """Return the page and words of the most similar passage; None if nothing is similar."""
    sought = list(_lower_quote_words(quote))
    if not sought:
        return None
    sought_words = set(sought)
    ranked = sorted(
        ((len(sought_words.intersection(_lower_quote_words(page.text))), page) for page in pages),
        key=lambda entry: (-entry[0], entry[1].number),
    )
    best: tuple[float, int, str] | None = None
    for count, page in ranked[:MAX_COMPARED_PAGES]:
        if count < MIN_LIKENESS * len(sought_words):
            break
        for part in _likeliest_quote_parts(page.text, sought_words, len(quote)):
            share, passage = _closest_passage_to_quote(part, sought)
            if share >= MIN_LIKENESS and (best is None or share > best[0]):
                best = (share, page.number, passage)
    return best and (best[1], best[2])


def _likeliest_quote_parts(text: str, sought: set[str], overlap: int) -> list[str]:
    """Return the few parts with most of the words: to align a word takes time for each repeat."""
    return nlargest(
        MAX_COMPARED_PARTS,
        _parts_to_search_for_quote(text, overlap),
        key=lambda part: len(sought.intersection(_lower_quote_words(part))),
    )


def _parts_to_search_for_quote(text: str, overlap: int) -> Iterator[str]:
    """Return the text in parts, each beginning with the last words of the one before."""
    start = 0
    while start == 0 or start + overlap < len(text):
        yield text[start : start + PART_CHARACTERS + overlap]
        start += PART_CHARACTERS


def _closest_passage_to_quote(text: str, sought: list[str]) -> tuple[float, str]:
    """Return the words around the longest run of the quote's words, and its matching word count."""
    places = list(_WORD.finditer(text))
    words = [place[0].lower() for place in places]
    run = SequenceMatcher(None, words, sought, autojunk=False).find_longest_match()
    first = max(0, run.a - run.b)
    window = words[first : first + len(sought)]
    blocks = SequenceMatcher(None, window, sought, autojunk=False).get_matching_blocks()
    same = [block for block in blocks if block.size]
    if not same:
        return 0.0, ""
    last = min(first + len(sought), len(places)) - 1
    end = places[last].end()
    while end < len(text) and not text[end].isspace():
        end += 1
    share = sum(block.size for block in same) / len(sought)
    return share, fold_line_ends(text[places[first].start() : end])[:MAX_SHOWN_CHARACTERS]


def _lower_quote_words(text: str) -> Iterator[str]:
    return (word[0].lower() for word in _WORD.finditer(text))


def _line_equal_to_quote(page_text: str, sought: "_FoldedText") -> str | None:
    lines = page_text.split("\n")
    parts = [page_text, *lines, *(cell for line in lines for cell in line.split(" | "))]
    # A much longer text cannot be the same without its layout.
    for part in parts:
        if len(part.strip()) < 4 * MIN_QUOTE and _fold(part).equals(sought):
            return fold_line_ends(part)
    return None


class _FoldedText:
    """A text without layout: no white space except between digits, compatibility characters
    decomposed.

    Hyphens are removed and remembered by position. One at a line end may belong to the word or not,
    so it matches either reading.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        letters: list[str] = []
        places = array("L")  # a list would need several times the memory
        self.hyphens: dict[int, bool] = {}  # before which letter, and whether at a line end
        space = False
        for place, char in enumerate(text):
            if char.isspace():
                space = True
                continue
            if char in _IGNORED:
                continue
            if char in _HYPHENS:
                ends = _LINE_END.match(text, place + 1) is not None
                self.hyphens[len(letters)] = self.hyphens.get(len(letters), False) or ends
                continue
            if letters and letters[-1].isdigit():
                if _RAISED.match(char):
                    letters.append("^")
                    places.append(place)
                elif space and char.isdigit() and len(letters) not in self.hyphens:
                    letters.append(" ")
                    places.append(place)
            space = False
            plain = _SHAPES.get(char) or (char if char.isascii() else _fold_quote_letter(char))
            letters += plain
            places.extend(place for _ in plain)
        self.letters = "".join(letters)
        self._places = places
        self._hyphen_places = list(self.hyphens)  # in ascending order

    @property
    def is_short(self) -> bool:
        return len(" ".join(self._text.split())) < MIN_QUOTE

    def equals(self, quote: "_FoldedText") -> bool:
        same = quote.letters == self.letters
        return same and bool(self.letters) and self._hyphens_agree(quote, 0)

    def find_starts(self, quote: "_FoldedText") -> Iterator[int]:
        sought = quote.letters
        start = self.letters.find(sought) if sought else -1
        while start >= 0:
            if self._whole_words(start, start + len(sought)) and self._hyphens_agree(quote, start):
                yield start
            start = self.letters.find(sought, start + 1)

    def original_text(self, start: int, end: int) -> str:
        first, last = self.original_place(start, end)
        return self._text[first:last]

    def original_place(self, start: int, end: int) -> tuple[int, int]:
        """Return begin and end of these letters in the original text."""
        last = self._places[end - 1] + 1
        # Combining marks on the last letter, which are letters of their own here.
        while last < len(self._text) and unicodedata.combining(self._text[last]):
            last += 1
        return self._places[start], last

    def _hyphens_agree(self, quote: "_FoldedText", start: int) -> bool:
        inside = range(start + 1, start + len(quote.letters))
        theirs = {place + start: ends for place, ends in quote.hyphens.items()}
        # A long page has thousands of hyphens, of which a quote covers a few.
        first = bisect_left(self._hyphen_places, inside.start)
        last = bisect_left(self._hyphen_places, inside.stop)
        return all(
            self.hyphens.get(place) or theirs.get(place)
            for place in theirs.keys() ^ set(self._hyphen_places[first:last])
            if place in inside
        )

    def _whole_words(self, start: int, end: int) -> bool:
        # A page with "unable to be read" does not contain "able to be read".
        return not (self._within_word(start) or self._within_word(end))

    def _within_word(self, position: int) -> bool:
        if position <= 0 or position >= len(self.letters):
            return False
        if unicodedata.combining(self.letters[position]):
            return True
        first, last = self._places[position - 1], self._places[position]
        if first == last:
            return self.letters[position - 1] != " "
        between = self._text[first + 1 : last]
        if self.hyphens.get(position) is False or (
            position not in self.hyphens and _SPACE.search(between)
        ):
            return False
        before, after = (
            self.letters[max(0, position - 2) : position],
            self.letters[position : position + 2],
        )
        # A page with "1,500 EUR" does not contain "500 EUR".
        if _POINT_IN_NUMBER.search(before + after):
            return True
        letter_before, letter_after = before[-1], after[0]
        return (letter_before.isdigit() and letter_after.isdigit()) or (
            _is_cased(letter_before) and _is_cased(letter_after)
        )


_fold_passage = lru_cache(8192)(_FoldedText)
_fold_page = lru_cache(1024)(_FoldedText)


def _fold(text: str) -> _FoldedText:
    """Fold a text; each coverage of a document folds the same pages and quotes again."""
    if len(text) > PART_CHARACTERS:
        return _FoldedText(text)
    return _fold_page(text) if len(text) > PASSAGE_CHARACTERS else _fold_passage(text)


def _fold_quote_letter(char: str) -> str:
    """Return a ligature's letters, or an accented letter as the letter and its accent."""
    apart = unicodedata.normalize("NFKD", char)
    return "".join(_SHAPES.get(each, each) for each in apart if not each.isspace())


def _is_cased(letter: str) -> bool:
    # Scripts without capitals (Chinese, Thai) put no spaces between words either.
    return letter.lower() != letter.upper()
