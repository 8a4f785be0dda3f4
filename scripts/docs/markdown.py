"""Writes Markdown as GitHub parses it."""

import re
from collections.abc import Iterable, Sequence


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [_markdown_row(heads), "|" + "---|" * len(heads), *map(_markdown_row, rows)]


def heading_anchor(heading: str) -> str:
    """Return the fragment of a link to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _markdown_row(cells: Sequence[str]) -> str:
    # A bar ends the cell, even within code.
    shown = (f" {text} " if text else " " for text in (cell.replace("|", r"\|") for cell in cells))
    return f"|{'|'.join(shown)}|"
