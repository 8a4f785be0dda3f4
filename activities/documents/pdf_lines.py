"""Lines of a PDF from positioned letters: spaces, paragraphs, and words joined at line ends."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from statistics import median

from activities.documents.bidi import is_right_to_left, order_bidi_letters

MAX_REORDERED_LETTERS = 2_000
"""Longest line, in letters, that is put into reading order."""
CELL_GAP = 1.5
"""Gap between cells of a row, in heights of a letter."""
LEAST_GAP = 1.0
"""Points between letters in which a line may stand."""
AROUND = 12
"""Number of lines above and below that determine the width of a column."""
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
_NUMBER = re.compile(r"\s*\d{1,3}(?:\s+|$)")
_DOTTED = re.compile(r"[\w+~-]+(?:\.[\w+~-]+)+")
_LAST_DOTTED = re.compile(r"([\w+~-]+(?:\.[\w+~-]+)*\.)$")
_FIRST_DOTTED = re.compile(r"([\w+~-]+(?:\.[\w+~-]+)*)(\S*)\s*")
_LAST_WORD = re.compile(r"([^\W\d_]+)[-\u2010\u2011\u00ad\ufffe\x02]$")
_FIRST_WORD = re.compile(r"([^\W\d_]+)(\S*)\s*")
# Before these words, a hyphen stands for a part of a later word: "Ein-\nund Ausgang".
_HANGING = {"und", "oder", "bzw", "sowie", "bis", "and", "or"}


@dataclass(slots=True)
class Box:
    """A rectangle on a page, in points from the lower left corner."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom


@dataclass(slots=True)
class Line:
    """A line of a page, and the positions of its letters."""

    text: str
    box: Box | None = None
    cells: list[tuple[float, str]] = field(default_factory=list)
    """Left edge and words of what wide gaps divide; empty without such gaps."""


def spaced_pdf_line(
    text: str, boxes: list[Box], places: list[int], upright: Sequence[Box] = ()
) -> Line:
    """Return a line with the spaces that only gaps show, and the positions of its letters.

    Args:
        upright: Lines drawn on the page, which divide cells however near these are.
    """
    parts: list[str] = []
    shown = [place for place in places if not text[place].isspace()]
    if not shown:
        return Line("")
    drawn = [place for place in shown if boxes[place].height > 0 and text[place] != "\x02"]
    gaps = {
        after: boxes[after].left - boxes[before].right
        for before, after in pairwise(places)
        if _are_boxes_beside(boxes[before], boxes[after])
    }
    wide = {
        after
        for before, after in pairwise(drawn)
        if _are_boxes_beside(boxes[before], boxes[after])
        and (
            boxes[after].left - boxes[before].right > CELL_GAP * boxes[after].height
            or (upright and _is_line_between(boxes[before], boxes[after], upright))
        )
    }
    starts: list[tuple[int, float]] = []
    for order, place in enumerate(places):
        letter = text[place]
        if place in wide:
            starts.append((len(parts), boxes[place].left))
        before = places[order - 1] if order else None
        if before is not None and letter.isalnum() and text[before].isalnum():
            if _is_word_gap(place, before, gaps, boxes, places, order):
                parts.append(" ")
            elif letter.isdigit() and text[before].isdigit():
                # A note's number after another number would look like its last digit.
                parts.append("^" if _is_raised_box(boxes[before], boxes[place]) else "")
        parts.append(letter)
    box = None
    if drawn:
        first = boxes[drawn[0]]
        tallest = max(drawn, key=lambda place: boxes[place].height)
        box = Box(first.left, boxes[drawn[-1]].right, boxes[tallest].bottom, boxes[tallest].top)
    if 0 < len(drawn) <= MAX_REORDERED_LETTERS and is_right_to_left(
        text[places[0] : places[-1] + 1]
    ):
        return Line(_reorder_bidi_line(text, boxes, drawn), box)
    ends = [start for start, _ in starts] + [len(parts)]
    cells = [
        (left, "".join(parts[start:end]).strip())
        for (start, left), end in zip([(0, boxes[drawn[0]].left), *starts], ends, strict=True)
    ] if starts else []  # fmt: skip
    return Line("".join(parts), box, cells)


def _reorder_bidi_line(text: str, boxes: list[Box], drawn: list[int]) -> str:
    spaces = {number for number, place in enumerate(drawn) if place and text[place - 1].isspace()}
    return order_bidi_letters(
        [text[place] for place in drawn],
        lambda number: boxes[drawn[number]].left,
        lambda number: boxes[drawn[number]].right,
        0.14 * median(boxes[place].height for place in drawn),
        spaces,
    )


def _are_boxes_beside(before: Box, after: Box) -> bool:
    overlap = min(before.top, after.top) - max(before.bottom, after.bottom)
    return overlap > 0.3 * min(before.height, after.height) > 0 and after.left > before.left


def _is_line_between(before: Box, after: Box, upright: Sequence[Box]) -> bool:
    height = (after.bottom + after.top) / 2
    return after.left - before.right > LEAST_GAP and any(
        before.right <= (line.left + line.right) / 2 <= after.left
        and line.bottom <= height <= line.top
        for line in upright
    )


def _is_word_gap(
    place: int, before: int, gaps: dict[int, float], boxes: list[Box], places: list[int], order: int
) -> bool:
    gap = gaps.get(place)
    if gap is None or gap < 0.18 * min(boxes[before].height, boxes[place].height):
        return False
    # Letterspaced text is still one word.
    around = [gaps.get(before)]
    around.append(gaps.get(places[order + 1]) if order + 1 < len(places) else None)
    return not any(other is not None and other > 0.5 * gap for other in around)


def _is_raised_box(before: Box, after: Box) -> bool:
    return (
        after.height < 0.85 * before.height and after.bottom > before.bottom + 0.2 * before.height
    )


def join_raised_number_lines(lines: list[Line]) -> list[Line]:
    """Return the lines with raised note numbers in their place instead of on lines of their own.

    PDFium begins a line at a number set higher than the words beside it, if these end a line or
    begin a note.
    """
    result: list[Line] = []
    for line in lines:
        above = result[-1] if result else None
        if above is None or above.box is None or line.box is None:
            result.append(line)
        elif _pdf_line_begins_with_mark(line, above.box):
            digits = above.text[-1:].isdigit()
            above.text += f"{'^' if digits else ''}{line.text.strip()}"
            above.cells = []
            above.box = replace(above.box, right=line.box.right)
        elif _NUMBER.fullmatch(above.text) and _is_pdf_line_note_mark(
            above.box, line.box.left, line.box
        ):
            result[-1] = Line(f"{above.text.strip()} {line.text}", line.box)
        else:
            result.append(line)
    return result


def _pdf_line_begins_with_mark(line: Line, above: Box) -> bool:
    """Whether a line begins with the mark of a note that follows the line above."""
    box = line.box
    if box is None or not _NUMBER.match(line.text):
        return False
    if _NUMBER.fullmatch(line.text):
        return _is_pdf_line_note_mark(box, above.right, above)
    near = 0.2 * above.height
    return abs(box.bottom - above.bottom) < near and abs(box.left - above.right) < near


def _is_pdf_line_note_mark(mark: Box, beside: float, words: Box) -> bool:
    """Whether a number is close to one end of words, smaller and higher than they."""
    near = min(abs(mark.left - beside), abs(mark.right - beside)) < 0.5 * words.height
    return near and _is_raised_box(words, mark) and mark.bottom < words.top


def count_pdf_line_words(lines: Iterable[Line]) -> Counter[str]:
    """Count each word of the document, and each name with inner dots such as `invoke-rc.d`.

    Halves of divided words are not counted.
    """
    words: Counter[str] = Counter()
    is_divided = False
    for line in lines:
        line_words = _WORD.findall(line.text.lower())
        after, is_divided = is_divided, bool(_LAST_WORD.search(line.text))
        words.update(line_words[after : len(line_words) - is_divided])
        if "." in line.text:
            words.update(_DOTTED.findall(line.text))
    return words


def separate_pdf_paragraphs(lines: list[Line]) -> list[str]:
    """Return the lines with an empty one before each that begins a paragraph, a term or a
    definition.

    A line begins one if it is farther below than usual within a paragraph, or if its indentation
    changes although the line above had room for its first word.
    """
    edges = _line_right_edges(lines)
    ended = [
        number > 0 and _has_room_on_line(lines[number - 1], line, edges[number - 1])
        for number, line in enumerate(lines)
    ]
    usual = _usual_line_step(lines, ended)
    texts: list[str] = []
    for number, line in enumerate(lines):
        above = lines[number - 1].box if number else None
        if above and line.box:
            step = above.bottom - line.box.bottom
            size = max(above.height, line.box.height)
            is_indented = abs(above.left - line.box.left) > 0.5 * size
            if (
                step > 1.35 * max(usual, 0.95 * size)
                or step < -3 * size
                or (ended[number] and is_indented and step > 0.5 * size)
            ):
                texts.append("")
        texts.append(line.text.strip(" "))
    return texts


def _usual_line_step(lines: list[Line], ended: list[bool]) -> float:
    """Return the usual distance between lines of a paragraph.

    This is not the median of all lines: where most lines are paragraphs of their own, most are
    farther apart.
    """
    steps = sorted(
        upper.box.bottom - lower.box.bottom
        for (upper, lower), is_ended in zip(pairwise(lines), ended[1:], strict=True)
        if upper.box
        and lower.box
        and not is_ended
        and 0 < upper.box.bottom - lower.box.bottom < 4 * lower.box.height
    )
    return steps[len(steps) // 4] if steps else 0.0


def _line_right_edges(lines: list[Line]) -> list[float]:
    """Return for each line the right edge of the lines around it in the same column."""
    edges = [0.0] * len(lines)
    for start, end in _line_columns(lines):
        for number in range(start, end):
            line_box = lines[number].box
            around = lines[max(start, number - AROUND) : min(end, number + AROUND + 1)]
            boxes = [line.box for line in around if line.box]
            # A title spans the columns below it.
            rights = [
                box.right for box in boxes if line_box and box.height < 1.15 * line_box.height
            ]
            if rights:
                # A long name that could not be divided extends into the margin.
                edges[number] = sorted(rights)[-1 - min(2, len(rights) // 8)]
    return edges


def _line_columns(lines: list[Line]) -> list[tuple[int, int]]:
    """Return the left and right edges of lines that are below one another."""
    starts = [0]
    for number, (upper, lower) in enumerate(pairwise(lines), 1):
        if not (
            upper.box
            and lower.box
            and upper.box.bottom > lower.box.bottom - lower.box.height
            and upper.box.left < lower.box.right
            and lower.box.left < upper.box.right
        ):
            starts.append(number)
    return list(pairwise([*starts, len(lines)]))


def _has_room_on_line(upper: Line, lower: Line, edge: float) -> bool:
    """Whether the first word of a line would have fitted on the line above."""
    if not (upper.box and lower.box and lower.text.strip()):
        return False
    room = edge - upper.box.right - 0.5 * upper.box.height
    letter = (lower.box.right - lower.box.left) / len(lower.text.strip())
    # Letters differ in width, and spaces of justified lines can be narrow.
    return room > (len(lower.text.split()[0]) + 2) * letter


def join_divided_words(lines: list[str], words: Counter[str]) -> list[str]:
    """Return the lines with words that are divided at line ends completed on their first line."""
    joined: list[str] = []
    for line in lines:
        above = joined[-1] if joined else ""
        joining = _join_name_across_pdf_lines(above, line, words) or _join_divided_word(
            above, line, words
        )
        if joining is None:
            joined.append(line)
            continue
        joined[-1], rest = joining
        if rest:
            joined.append(rest)
    return joined


def _join_name_across_pdf_lines(
    above: str, line: str, words: Counter[str]
) -> tuple[str, str] | None:
    """Return the line above with a name completed that is divided after a dot, and the rest of the
    line.

    None if the document has no such name elsewhere.
    """
    last = _LAST_DOTTED.search(above) if above.endswith(".") else None
    first = _FIRST_DOTTED.match(line) if last else None
    if last is None or first is None or not words[f"{last[1]}{first[1]}"]:
        return None
    return f"{above}{first[1]}{first[2]}", line[first.end() :]


def _join_divided_word(above: str, line: str, words: Counter[str]) -> tuple[str, str] | None:
    last = _LAST_WORD.search(above)
    first = _FIRST_WORD.match(line) if last else None
    if last is None or first is None or first[1].lower() in _HANGING:
        return None
    hyphen = "" if _is_one_divided_word(last[1], first[1], above[-1], words) else "-"
    return f"{above[:-1]}{hyphen}{first[1]}{first[2]}", line[first.end() :]


def _is_one_divided_word(first_half: str, second_half: str, mark: str, words: Counter[str]) -> bool:
    if mark == "\u00ad":
        return True
    joined, hyphenated = (first_half + second_half).lower(), f"{first_half}-{second_half}".lower()
    if words[joined] or words[hyphenated]:
        return words[joined] >= words[hyphenated]
    if second_half[0].isupper():
        return False
    # Two words of the document that nowhere form one are more likely written with the hyphen.
    both = words[first_half.lower()] > 1 and words[second_half.lower()] > 1
    return not (both and len(first_half) > 2 and len(second_half) > 2)
