"""Renders a trace as text in three levels of detail."""

from typing import Any, Literal

from sqlalchemy import Row

from activities.redaction.secrets import redact
from activities.text.tokens import count_tokens

DetailLevel = Literal["metadata", "summary", "full"]
MAX_TOKENS: dict[DetailLevel, int] = {"metadata": 24, "summary": 100}
"""Token limits per trace; `full` is limited only by its texts."""
PROSE = ("task", "todo", "what_happened", "what_was_correct", "why", "path", "tool")
"""Fields written by people and models, which may contain credentials."""


def render_trace(row: Row[Any], level: DetailLevel) -> str:
    by = row.guard or row.source
    trial = " (on trial)" if row.stage else ""
    head = " ".join(part for part in (f"T{row.id} {row.type}", by, row.tool) if part) + trial
    if level == "metadata":
        return _cut_trace_line(head, MAX_TOKENS["metadata"])
    if level == "summary":
        lines = (
            row.what_happened,
            _labelled_trace_part("why", row.why),
            _labelled_trace_part("correct", row.what_was_correct),
        )
        line = f"{_cut_trace_line(head, MAX_TOKENS['metadata'])}: {'; '.join(filter(None, lines))}"
        return _cut_trace_line(line, MAX_TOKENS["summary"])
    parts = (
        _fold_trace_line(head),
        _labelled_trace_part("what happened", row.what_happened),
        _labelled_trace_part("what was correct", row.what_was_correct),
        _labelled_trace_part("why", row.why),
        _labelled_trace_part("file", row.path),
        _labelled_trace_part("todo", row.todo),
        f"decided by: {row.source} {row.guard}".rstrip(),
        f"agent {row.agent}, job {row.job}, phase {row.phase}, step {row.step}",
        _labelled_trace_part("task", row.task),
    )
    return "\n".join(filter(None, parts))


def searchable_trace_text(row: Row[Any]) -> str:
    return "\n".join(
        (row.task, row.todo, row.what_happened, row.what_was_correct, row.why, row.guard, row.tool,
         row.path)
    )  # fmt: skip


def _labelled_trace_part(name: str, text: str) -> str:
    return f"{name}: {_fold_trace_line(text)}" if text else ""


def _fold_trace_line(text: str) -> str:
    """Put text on one line, so that it cannot look like another trace or a heading."""
    return " ".join(text.split())


def _cut_trace_line(line: str, tokens: int) -> str:
    line = _fold_trace_line(line)
    if count_tokens(line) <= tokens:
        return line
    low, high = 0, min(len(line), tokens * 12)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if count_tokens(f"{line[:middle]}…") <= tokens else (low, middle - 1)
        )
    return f"{line[:low].rstrip()}…"


def redact_trace_text(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: redact(row[name]) for name in PROSE}
