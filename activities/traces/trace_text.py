"""A trace in words, in three levels of detail."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import Row

from activities.redaction.secrets import redact
from activities.text.tokens import count_tokens

DetailLevel = Literal["metadata", "summary", "full"]
MAX_TOKENS: dict[DetailLevel, int] = {"metadata": 24, "summary": 100}
"""Most tokens of a trace; `full` has no limit but that of its texts."""
PROSE = ("task", "todo", "what_happened", "what_was_correct", "why", "path", "tool")
"""What people and models wrote: it may hold a credential."""


def render_trace(row: Row[Any], level: DetailLevel) -> str:
    """The trace in one line, or for `full` in several."""
    by = row.guard or row.source
    trial = " (on trial)" if row.stage else ""
    head = " ".join(part for part in (f"T{row.id} {row.type}", by, row.tool) if part) + trial
    if level == "metadata":
        return _cut_to_tokens(head, MAX_TOKENS["metadata"])
    if level == "summary":
        said = (
            row.what_happened,
            _labelled_part("why", row.why),
            _labelled_part("correct", row.what_was_correct),
        )
        line = f"{_cut_to_tokens(head, MAX_TOKENS['metadata'])}: {'; '.join(filter(None, said))}"
        return _cut_to_tokens(line, MAX_TOKENS["summary"])
    parts = (
        _fold_line(head),
        _labelled_part("what happened", row.what_happened),
        _labelled_part("what was correct", row.what_was_correct),
        _labelled_part("why", row.why),
        _labelled_part("file", row.path),
        _labelled_part("todo", row.todo),
        f"decided by: {row.source} {row.guard}".rstrip(),
        f"agent {row.agent}, job {row.job}, phase {row.phase}, step {row.step}",
        _labelled_part("task", row.task),
    )
    return "\n".join(filter(None, parts))


def search_text(row: Row[Any]) -> str:
    """The texts by which a trace is found."""
    return "\n".join(
        (row.task, row.todo, row.what_happened, row.what_was_correct, row.why, row.guard, row.tool,
         row.path)
    )  # fmt: skip


def _labelled_part(name: str, text: str) -> str:
    return f"{name}: {_fold_line(text)}" if text else ""


def _fold_line(text: str) -> str:
    """In one line: what an agent recorded must not look like a further trace, or like a heading."""
    return " ".join(text.split())


def _cut_to_tokens(line: str, tokens: int) -> str:
    """The line, cut where it has more tokens."""
    line = _fold_line(line)
    if count_tokens(line) <= tokens:
        return line
    low, high = 0, min(len(line), tokens * 12)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if count_tokens(f"{line[:middle]}…") <= tokens else (low, middle - 1)
        )
    return f"{line[:low].rstrip()}…"


def redact_trace(row: dict[str, Any]) -> dict[str, Any]:
    """The row with everything in its texts hidden that looks like a credential."""
    return row | {name: redact(row[name]) for name in PROSE}
