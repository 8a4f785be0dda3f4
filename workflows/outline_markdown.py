"""Prints an outline as Markdown, for the details of a job or a project in Temporal Web."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.outline import CURRENT, Outline, Row, Section

MOST_ROWS = 50
"""Most rows of a section."""
MOST_CHARACTERS = 2000
"""Most characters of a row."""


def outline_markdown(outline: Outline) -> str:
    """Return an outline in Markdown. Boxes are characters: `- [x]` would stay literal."""
    state = " · ".join([f"**{outline.ending}**", *outline.facts])
    lines = [f"## {outline.title}", "", state]
    for section in outline.sections:
        lines += ["", *section_markdown(section)]
    return "\n".join(lines)


def section_markdown(section: Section) -> list[str]:
    """Return the lines of a section: a table, a list, or paragraphs if it has no heading."""
    heading = section.heading[:1].upper() + section.heading[1:]
    lines = [f"### {heading}", ""] if heading else []
    lines += [section.lead, ""] if section.lead else []
    rows = section.rows[:MOST_ROWS]
    if section.columns:
        lines += _table_lines(section.columns, [row.cells for row in rows])
    elif any(row.mark for row in rows):
        # A table, since the UI gives list items bullets of its own and no hanging indent. Its cells
        # have no padding, hence the non-breaking space.
        cells = [(f"{row.mark}\N{NO-BREAK SPACE}", _emphasized(row)) for row in rows]
        lines += _table_lines(("", ""), cells)
    else:
        for row in rows:
            lines += _row_lines(row, is_listed=bool(section.heading))
    if (more := len(section.rows) - MOST_ROWS) > 0:
        lines += ["", f"and {more} more"]
    return lines[:-1] if lines and not lines[-1] else lines


def _row_lines(row: Row, *, is_listed: bool) -> list[str]:
    if row.is_quoted:
        # A code block, which an agent's text cannot close.
        return [*(f"    {line}" for line in row.text.splitlines()), ""]
    text = row.text[:MOST_CHARACTERS]
    return [f"- {text}", *(f"  - {each}" for each in row.below)] if is_listed else [text, ""]


def _table_lines(columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> list[str]:
    shown = [columns, ("---",) * len(columns), *rows]
    return [f"| {' | '.join(map(markdown_table_cell, cells))} |" for cells in shown]


def _emphasized(row: Row) -> str:
    return f"**{row.text}**" if row.mark == CURRENT else row.text


def markdown_table_cell(text: str) -> str:
    """Escape text for a table cell."""
    # A non-breaking space stays.
    return " ".join(text.replace("\n", " ").split(" ")).replace("|", "\\|")
