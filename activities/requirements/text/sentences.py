"""Splits a document's pages into sentences and list items, each exactly as printed on one page.

It handles plain text from PDFs as well as Markdown: wrapped lines, unmarked headings, and running
headers and footers in the text. Python's `re` is used on lines and blocks only, with expressions
that cannot backtrack.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from activities.documents.pages import Page, find_page_section_starts, section_before
from activities.documents.quotes import fold_line_ends
from activities.requirements.text.item_numbers import SECTION_NUMBER, ItemNumbers, section_number
from activities.requirements.text.running_lines import (
    _NOTE_MARK,
    RUNNING_TITLE,
    repeated_running_lines,
    running_line_shape,
    split_footnotes,
    split_running_lines,
)
from activities.text.sentence_ends import CLOSERS, STARTER, split_at_sentence_ends

_ITEM = re.compile(
    r"\s*(?:[-*+\u2022\u2023\u25e6\u25aa\u25cf\u25cb\u00b7\u2013\u2014]\s+|\(?(?:\d{1,3}[a-z]?|[A-Za-z]|[ivx]{1,5})[.)]\s+|§+\s*\d+\w?\s+)"
)
_BULLET = re.compile(r"\s*[*+\u2022\u2023\u25e6\u25aa\u25cf\u25cb]\s")
_CLAUSE = re.compile(r"\s*(?:\d{1,3}|[A-Z])(?:\.\d{1,3})+\.?\s+")
_QUOTE_MARK = re.compile(r"\s*(?:>\s?)+")
_HEADING = re.compile(r"\s*#{1,6}\s+")
_RULE = re.compile(r"[-=_*~|:+\s]{3,}$")
_LEADERS = re.compile(r"\.{5}|(?:\. ){4}")
_FENCE = re.compile(r"\s*(```|~~~)")
_CELLS = re.compile(r"\s\|\s|^\s*\||\|\s*$", re.MULTILINE)
_JOINING = {"and", "or", "of", "to", "the", "und", "oder", "der", "die", "das", "von"}
_FIRST = ("1", "a", "A", "i")
_STOPS = tuple(".!?:;")
_OPEN_WORD = re.compile(r"\s*\S*[-\u2010\u00ad]$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence or list item: `text` is on the page, `full_text` continues over the page end.

    `is_item` means that it is in a list item or numbered clause, `begins_block` that it is the
    first of its block.
    """

    page: int
    text: str
    full_text: str
    is_item: bool = False
    begins_block: bool = True
    is_heading: bool = False
    section: str = ""
    """Number of its section as the document gives it, or the title if there is no number."""
    rest: str = ""
    """The part of it that is on the next page."""
    number: str = ""
    """What the document calls the item or table row it is in: `6.2.1`, `AU-02 a.1`, `§ 257 (2)`."""
    level: int = 0
    """How many lists it is in, one in the other."""
    column: int = 0
    """The cell of a table row it is in, from 1; 0 outside of tables."""

    @property
    def source_id(self) -> str:
        """What the document calls the item or section it is in; empty if it has no number."""
        return self.number or section_number(self.section)


@dataclass(slots=True)
class _Block:
    lines: list[str] = field(default_factory=list)
    is_item: bool = False
    is_heading: bool = False
    section: str = ""
    column: int = 0
    row: str | None = None
    """The first cell of its row; empty where a row goes on."""


def split_sentences(
    pages: Iterable[Page], abbreviations: frozenset[str], words: frozenset[str]
) -> list[Sentence]:
    """Return all sentences in order; lines that repeat at the top or foot of pages appear once.

    A sentence that continues over a page end belongs to the page where it starts, and the rest is
    not repeated on the next page. Footnotes follow the text of their page. `words` (frequent ones
    in lower case) help to detect that a page ends in the middle of a sentence.
    """
    page_list = list(pages)
    furniture = repeated_running_lines(page_list)
    shown: set[str] = set()
    result: list[Sentence] = []
    last = -1
    section = ""
    # The file's own section marks are more reliable than lines that look like headings.
    numbers = ItemNumbers()
    titles = {_section_title_words(title) for page in page_list for title in page.sections}
    for page in page_list:
        running, lines = split_running_lines(page, furniture)
        body, notes = split_footnotes(lines)
        new = [line for line in running if running_line_shape(line) not in shown]
        shown.update(map(running_line_shape, new))
        page_sentences: list[Sentence] = []
        for block, inside in _blocks_in_sections(page, body, titles, section):
            section = inside
            if not block.lines:
                continue
            number, level = numbers.number_block(
                block.lines[0], section, item=block.is_item, row=block.row
            )
            of_block = [
                replace(each, number=number, level=level, column=block.column)
                for each in _split_block_into_sentences(page.number, block, abbreviations, section)
            ]
            if block.column and not (block.row or page_sentences):
                place = _divided_cell(result, block.column)
                if place is not None and of_block:
                    result[place] = _continued(result[place], of_block.pop(0))
            page_sentences += of_block
        if (
            last >= 0
            and page_sentences
            and _continues_sentence(result[last], page_sentences[0], words)
        ):
            result[last] = _continued(result[last], page_sentences.pop(0))
        # Insert them before the body: after it they would part a list from its introduction.
        position = max(last, 0)
        result[position:position] = [
            Sentence(page.number, line.strip(), line, is_heading=bool(RUNNING_TITLE.match(line)))
            for line in new
        ]
        result += page_sentences
        last = len(result) - 1
        for block in (block for note in notes for block in _split_blocks(note)):
            result += _split_block_into_sentences(page.number, block, abbreviations, section)
    return result


def _continued(sentence: Sentence, rest: Sentence) -> Sentence:
    full_text = fold_line_ends(f"{sentence.full_text}\n{rest.text}")
    return replace(sentence, full_text=full_text, rest=sentence.rest or rest.text)


def _divided_cell(sentences: list[Sentence], column: int) -> int | None:
    """Return the place of the unfinished sentence in this cell of the last row; None if there is
    none.
    """
    for place in range(len(sentences) - 1, -1, -1):
        sentence = sentences[place]
        if sentence.column == column and sentence.text[-1] not in ".!?:;":
            return place
        if sentence.column <= 1:
            return None
    return None


def _blocks_in_sections(
    page: Page, lines: list[str], titles: set[str], section: str
) -> Iterator[tuple[_Block, str]]:
    """Yield the blocks of a page, each with the section that it is in.

    Args:
        lines: Its lines without what repeats on each page.
        titles: Titles of the sections that the file itself marks; empty without any.
        section: The section in which the page begins.
    """
    place, sections = 0, find_page_section_starts(page)
    for block in _split_blocks(lines):
        if block.lines and page.sections:
            place = max(place, page.text.find(block.lines[0], place))
            section = section_before(sections, place) or section
        elif not titles:
            section = block.section or section
        if _section_title_words(" ".join(block.lines)) in titles:
            # The heading itself, or its entry in the table of contents.
            block.is_heading = True
        yield block, section


def _split_blocks(lines: list[str]) -> Iterator[_Block]:
    """Yield paragraphs, items, headings and table cells, without fenced code."""
    lengths = sorted(len(line) for line in lines if line.strip())
    width = lengths[len(lengths) * 9 // 10] if lengths else 0
    block = _Block()
    number = 0
    while number < len(lines):
        line = lines[number]
        after = lines[number + 1] if number + 1 < len(lines) else ""
        number += 1
        if fence := _FENCE.match(line):
            closed = _fence_end(lines, number, fence[1])
            yield block
            block = _Block()
            number = closed or number
        elif not line.strip() or _RULE.match(line) or _LEADERS.search(line):
            yield block
            block = _Block()
        elif _is_row_not_sentence(lines, number - 1):
            yield block
            yield from _row_blocks(line)
            block = _Block()
        elif _HEADING.match(line) or _is_heading(line, after, block, width):
            yield block
            yield _Block(
                [line], is_heading=_is_title_not_sentence(line), section=_section_number(line)
            )
            block = _Block()
        elif _begins_item(line, block) or _begins_clause(line, block):
            yield block
            clause = _CLAUSE.match(line) or line.lstrip().startswith("§")
            block = _Block([line], is_item=True, section=_section_number(line) if clause else "")
        else:
            block.lines.append(line)
    yield block


def _row_blocks(line: str) -> Iterator[_Block]:
    cells = [cell.strip() for cell in _CELLS.split(line)]
    if line.rstrip().endswith("|") and not cells[0]:
        del cells[0]  # the bar is the frame of the row
    for column, cell in enumerate(cells, 1):
        if cell:
            yield _Block([cell], is_item=True, column=column, row=cells[0])


def _is_row_not_sentence(lines: list[str], place: int) -> bool:
    """Return whether a line is a table row, and not a sentence that contains a bar.

    Bars frame a row, or the line above or below has cells too, possibly across one empty line.
    """
    line = lines[place]
    if not _CELLS.search(line):
        return False
    if line.lstrip().startswith("|") or (line.rstrip().endswith("|") and line.count("|") > 1):
        return True
    above = [other for other in lines[max(0, place - 2) : place] if other.strip()][-1:]
    below = [other for other in lines[place + 1 : place + 3] if other.strip()][:1]
    return any(_CELLS.search(other) or _RULE.match(other) for other in above + below)


def _fence_end(lines: list[str], start: int, fence: str) -> int | None:
    for number in range(start, len(lines)):
        if lines[number].lstrip().startswith(fence):
            return number + 1
    return None


def _is_title_not_sentence(line: str) -> bool:
    """Return whether a line set like a heading also reads like one; "Breaks should be used" does
    not.
    """
    words = [word for word in re.findall(r"[^\W\d_]+", line) if len(word) > 3]
    capitals = sum(word[0].isupper() for word in words)
    return bool(_HEADING.match(line) or SECTION_NUMBER.match(line)) or capitals > 0.6 * len(words)


def _section_number(line: str) -> str:
    """Return the number before a heading or clause; for a marked heading without one, its title."""
    if match := SECTION_NUMBER.match(line):
        return " ".join(match[1].split())
    return line.strip("# \t")[:200] if _HEADING.match(line) else ""


def _begins_item(line: str, block: _Block) -> bool:
    """Return whether the line starts a list item; a wrapped line may begin with a number."""
    match = _ITEM.match(line)
    if not match:
        return False
    mark = match[0].strip(" \t().")
    return not mark.isalnum() or mark in _FIRST or block.is_item or _block_ends_sentence(block)


def _begins_clause(line: str, block: _Block) -> bool:
    """Return whether the line starts a numbered clause; a wrapped line may begin with a number."""
    if not _CLAUSE.match(line):
        return False
    before, after = (_parse_section_number(text) for text in (block.section, _section_number(line)))
    return _block_ends_sentence(block) or after in ([*before[:-1], before[-1] + 1], [*before, 1])


def _section_title_words(heading: str) -> str:
    """Return the words of a heading in lower case, without the mark or number before them."""
    start = 0
    for marker in (_HEADING, _ITEM, SECTION_NUMBER):
        if match := marker.match(heading, start):
            start = match.end()
    return " ".join(heading[start:].strip(".: \t").casefold().split())


def _parse_section_number(section: str) -> list[int]:
    parts = section.split(".")
    return [int(part) for part in parts] if all(map(str.isdecimal, parts)) else [0]


def _block_ends_sentence(block: _Block) -> bool:
    return not block.lines or block.lines[-1].rstrip().rstrip(CLOSERS)[-1:] in _STOPS


def _is_heading(line: str, after: str, block: _Block, width: int) -> bool:
    """Return whether an unmarked short line is a heading: it has no full stop, and a new text
    follows.
    """
    text = line.strip()
    if len(text) > 70 or len(text) > width * 0.6 or text[-1] in ".!?:;,-" or text[0] in "-*\u2022":
        return False
    words = text.split()
    numbered = bool(_CLAUSE.match(line) or re.match(r"\d{1,2}\.?\s", text))
    if (_BULLET.match(after) and not numbered) or words[-1].lower() in _JOINING:
        return False  # the line introduces a list or continues on the next line
    first = words[1] if numbered and len(words) > 1 else words[0]
    follows = STARTER.match(after)
    return (
        len(words) <= 9
        # Terms in a glossary may begin with a small letter.
        and (first[0].isupper() or (len(words) <= 6 and follows is not None))
        and _block_ends_sentence(block)
        and (follows is None or not follows[1].islower())
    )


def _split_block_into_sentences(
    page: int, block: _Block, abbreviations: frozenset[str], section: str
) -> Iterator[Sentence]:
    text = "\n".join(block.lines)
    start = 0
    for marker in (_QUOTE_MARK, _HEADING, _CLAUSE, _ITEM, _NOTE_MARK):
        if match := marker.match(text, start):
            start = match.end()
    first = True
    for stop, following in split_at_sentence_ends(text, start, abbreviations):
        folded = fold_line_ends(text[start:stop])
        start = following
        if folded:
            yield Sentence(page, folded, folded, block.is_item, first, block.is_heading, section)
            first = False


def _continues_sentence(last: Sentence, first: Sentence, words: frozenset[str]) -> bool:
    is_open = last.text.count("[") > last.text.count("]")
    ends = last.text[-1] in ".!?:;" and not is_open
    if last.is_heading or ends or first.is_heading or first.is_item:
        return False
    if is_open:
        return True
    starter = STARTER.match(first.text)
    if starter is not None and starter[1].islower():
        return True
    return last.text[-1] in ",-" or last.text.split()[-1].lower() in words


def cut_sentence(text: str, limit: int) -> str:
    """Cut a text to `limit` characters at a word's end."""
    if len(text) > limit:
        text = text[: limit + 1].rsplit(" ", 1)[0]
    return _OPEN_WORD.sub("", text)
