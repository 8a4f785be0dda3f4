"""Updates what Temporal Web shows of a job or project: details, memo, search attributes."""

from collections.abc import Collection, Sequence

from temporalio import workflow
from temporalio.common import SearchAttributeKey

from protocol.outline import CURRENT, Outline, Row, Section
from protocol.search_attribute_names import AGENT, PHASE, STATUS
from protocol.short_text import table_cell
from protocol.status import AnyStatus
from protocol.teams import RUN
from protocol.waiting import status_value
from workflows.runtime.continuation import Continuation


class WebDisplay:
    """Writes memo and search attributes only when they change: each write is in the history."""

    def __init__(self, continuation: Continuation) -> None:
        self._continuation = continuation
        self._memo: dict[str, str] = {}
        self._attributes: dict[str, str] = {}

    def update(
        self,
        outline: Outline,
        memo: dict[str, str],
        attributes: dict[str, str],
        figures: dict[str, str] | None = None,
    ) -> None:
        """Show what has changed.

        Args:
            figures: Further fields of the memo, which are written along with the others only.
        """
        workflow.set_current_details(outline_markdown(outline))
        began = self._continuation.started_at
        memo = {**memo, "began": began, RUN: workflow.info().run_id}
        if memo != self._memo:
            workflow.upsert_memo({**memo, **(figures or {})})
        if attributes != self._attributes:
            workflow.upsert_search_attributes(
                [SearchAttributeKey.for_keyword(k).value_set(v) for k, v in attributes.items()]
            )
        self._memo, self._attributes = memo, attributes


def status_memo(status: AnyStatus, state: str) -> dict[str, str]:
    """Return the last state in short, for lists, and for when no worker can be asked."""
    word = status_value(status.status, status.waiting_for)
    return {"title": status.title, "agent": status.agent or "", "status": word, "state": state}


def search_attributes(
    memo: dict[str, str], registered: Collection[str], **more: str
) -> dict[str, str]:
    """Return the memo's values of the search attributes that the server has registered.

    Args:
        more: Further values, by the names of their attributes.
    """
    values = {
        AGENT: memo["agent"],
        STATUS: memo["status"],
        PHASE: memo.get("phase") or memo["state"][:100],
        **more,
    }
    return {name: value for name, value in values.items() if name in registered}


MOST_ROWS = 50
"""Most rows of a section."""
MOST_BELOW = 30
"""Most lines below a row."""
MOST_CHARACTERS = 2000
"""Most characters of a row."""


def outline_markdown(outline: Outline) -> str:
    """Return an outline in Markdown. Boxes are characters: `- [x]` would stay literal."""
    state = " · ".join([f"**{outline.ending}**", *outline.facts])
    lines = [f"## {outline.title}", "", state]
    # The scope is long, and the newest notices are to be seen without scrolling.
    for section in sorted(outline.sections, key=lambda section: section.name == "scope"):
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
        cells = [
            cell
            for row in rows
            for cell in (
                (f"{row.mark}\N{NO-BREAK SPACE}", _emphasized(row)),
                *(("", line.strip()) for line in row.below[:MOST_BELOW]),
            )
        ]
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
    return [f"| {' | '.join(map(table_cell, cells))} |" for cells in shown]


def _emphasized(row: Row) -> str:
    return f"**{row.text}**" if row.mark == CURRENT else row.text
