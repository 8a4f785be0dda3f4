"""Markdown that the details of jobs and projects in Temporal Web share."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.contract import ContractRow
from protocol.endings import COMPLETION_FILE
from protocol.short_text import first_few, one_line
from protocol.usage import Usage
from protocol.waiting import WaitState

MOST_ROWS = 40
"""Most rows of a contract that Temporal Web shows."""


def markdown_waiting_lines(waiting: WaitState) -> list[str]:
    """Return why something waits, and the remedy."""
    return [
        f"**Waiting: {waiting.reason}.** {waiting.message}",
        "",
        f"What to do: {waiting.remedy}",
    ]


def markdown_list_lines(heading: str, entries: Sequence[object]) -> list[str]:
    """Return a heading and a list; nothing if there are no entries."""
    return ["", f"### {heading}", "", *(f"- {entry}" for entry in entries)] if entries else []


def markdown_contract_lines(rows: Sequence[ContractRow]) -> list[str]:
    """Return the table of a contract, bounded: what was asked for, and how it stands."""
    if not rows:
        return []
    lines = ["", "### Contract", "", "| Statement | Item | Todo | Files | Checks | Verdict |"]
    lines.append("|---|---|---|---|---|---|")
    for row in rows[:MOST_ROWS]:
        todo = f"{row.phase}.{row.todo}" if row.todo else f"phase {row.phase}" if row.phase else ""
        finding = row.finding if row.verdict != "met" else row.quote
        cells = [
            f"{one_line(row.statement, 100)} ({row.place})" if row.place else row.statement[:100],
            row.id,
            todo,
            first_few(row.files, 3),
            one_line("; ".join(row.details[len(row.files) :][-2:]), 200),
            f"**{row.word}**: {one_line(row.reason or finding, 120)}".removesuffix(": "),
        ]
        lines.append(f"| {' | '.join(map(markdown_table_cell, cells))} |")
    if (more := len(rows) - MOST_ROWS) > 0:
        lines += ["", f"and {more} more, in {COMPLETION_FILE}"]
    return lines


def markdown_table_cell(text: str) -> str:
    """Escape text for a table cell."""
    return " ".join(text.split()).replace("|", "\\|")


def markdown_usage_line(usage: Usage) -> str:
    """Return `tool calls 30 (34 sent, 4 refused) · tokens 45,678 · cost 0.0123`; no cost if it is
    0.
    """
    cost = f" · cost {usage.cost:.4f}" if usage.cost else ""
    tokens = usage.prompt_tokens + usage.completion_tokens
    details = f" ({usage.call_details})" if usage.call_details else ""
    unfinished = f" ({usage.unfinished_details})" if usage.unfinished_details else ""
    return f"tool calls {usage.tool_calls}{details} · tokens {tokens:,}{unfinished}{cost}"


def markdown_code_block(about: dict[str, str]) -> list[str]:
    """Return an agent's text as an indented code block, which it cannot close."""
    text = "\n".join(f"{name}: {value}" for name, value in about.items())
    return [f"    {line}" for line in text.splitlines()]
