"""Rows of tables in a PDF, from wide gaps whose ends are below one another.

A row becomes one line with ` | ` between its cells, as other readers write it, and with all lines
of each cell. What a page end divides is on the next page a row whose first cell is empty.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from activities.documents.pdf_lines import Line

COLUMN_SHIFT = 3.0
"""Points by which the cells of a column may begin apart."""
MAX_STEP = 1.6
"""Most distance between the lines of a cell, in heights of a letter."""
_ITEM_MARK = re.compile(r"\W{0,2}(?:\w{1,3}|[\w-]*\d[\w.-]*)\W{0,2}")


@dataclass
class _Row:
    first: Line
    last: Line
    ceiling: float = float("-inf")
    """Height of the lowest line of the row above, in points."""
    cells: dict[int, list[str]] = field(default_factory=dict)
    """The lines of its cells, by column."""
    low: float = float("inf")
    """Height of its lowest line."""

    @property
    def line(self) -> Line:
        texts = [" ".join(self.cells.get(place, [])) for place in range(max(self.cells) + 1)]
        box, last = self.first.box, self.last.box
        both = box and last and replace(box, bottom=last.bottom)
        return Line(" | ".join(texts).strip(), both)


def join_table_rows(
    lines: Sequence[Line], before: Sequence[float]
) -> tuple[list[Line], Sequence[float]]:
    """Return the lines of a page with those of a table's row as one line each.

    Args:
        before: Left edges of the columns of the table at the end of the page before.

    Returns also the edges of the table at the end of this page.
    """
    result: list[Line] = []
    columns: Sequence[float] = before
    place = 0
    while place < len(lines):
        rows, end = _read_rows(lines[place:], columns)
        if not rows:
            columns = [left for left, _ in lines[place].cells]
            rows, end = _read_rows(lines[place:], columns)
            if sum(len(row.cells) > 1 for row in rows) < 2 or _is_list(rows):
                rows = []
        if rows:
            result += [row.line for row in rows]
            place += end
        else:
            result.append(lines[place])
            place += 1
            columns = []
    return result, columns


def _read_rows(lines: Sequence[Line], columns: Sequence[float]) -> tuple[list[_Row], int]:
    """Return the rows with these columns at the beginning, and how many lines they take."""
    rows: list[_Row] = []
    for number, line in enumerate(lines if len(columns) > 1 else ()):
        places = _columns_of(line, columns)
        if not places:
            return rows, number
        if not rows or (places[0] == 0 and len(places) > 1) or not _goes_on(rows[-1], line, places):
            ceiling = rows[-1].low if rows else float("-inf")
            after = lines[number + 1 : number + 2]
            if places == [0] and not (after and _is_beside(line, after[0], ceiling)):
                return rows, number
            rows.append(_Row(line, line, ceiling))
        row = rows[-1]
        row.last = line
        row.low = min(row.low, line.box.bottom if line.box else row.low)
        texts = [text for _, text in line.cells] or [line.text.strip()]
        for place, text in zip(places, texts, strict=True):
            row.cells.setdefault(place, []).append(text)
    return rows, len(lines) if rows else 0


def _is_beside(left: Line, right: Line, ceiling: float) -> bool:
    """Whether a line is in a cell to the right: as high, or higher if the left one is centred."""
    if not (left.box and right.box) or right.box.left <= left.box.right:
        return False
    higher = right.box.bottom - left.box.bottom
    return abs(higher) <= left.box.height / 2 or (higher > 0 and right.box.top <= ceiling + 1)


def _goes_on(row: _Row, line: Line, places: Sequence[int]) -> bool:
    """Whether a line is of the same row: below its last line, or a further cell beside it."""
    if not (row.first.box and row.last.box and line.box):
        return False
    below = row.last.box.bottom - line.box.bottom
    beside = line.box.bottom - row.first.box.bottom
    is_high = beside > line.box.height / 2 and line.box.top > row.ceiling + 1
    return 0 <= below <= MAX_STEP * line.box.height or (
        places[0] > max(row.cells) and below < 0 and not is_high
    )


def _columns_of(line: Line, columns: Sequence[float]) -> list[int]:
    """Return the column of each cell of a line; empty if one of them fits into none."""
    if line.box is None:
        return []
    lefts = [left for left, _ in line.cells] or [line.box.left]
    places = [
        next((n for n, edge in enumerate(columns) if abs(edge - left) <= COLUMN_SHIFT), -1)
        for left in lefts
    ]
    beside = [*columns, float("inf")][places[-1] + 1]
    return places if min(places) >= 0 and line.box.right < beside else []


def _is_list(rows: Sequence[_Row]) -> bool:
    """Whether the rows are items of a list, with their marks or numbers before them."""
    return all(
        max(row.cells) == 1 and _ITEM_MARK.fullmatch(" ".join(row.cells.get(0, ["x"])))
        for row in rows
    )
