"""A trace in words, in three levels of detail."""

from __future__ import annotations

from typing import Any, Literal

from sqlalchemy import Row

from activities.redaction.secrets import redact
from activities.text.tokens import count

Level = Literal["metadata", "summary", "full"]
TOKENS: dict[Level, int] = {"metadata": 24, "summary": 100}
"""Most tokens of a trace; `full` has no limit but that of its texts."""
PROSE = ("task", "todo", "what_happened", "what_was_correct", "why", "path", "tool")
"""What people and models wrote: it may hold a credential."""


def render_trace(row: Row[Any], level: Level) -> str:
    """The trace in one line, or for `full` in several."""
    by = row.guard or row.source
    trial = " (on trial)" if row.stage else ""
    head = " ".join(part for part in (f"T{row.id} {row.type}", by, row.tool) if part) + trial
    if level == "metadata":
        return _fitting(head, TOKENS["metadata"])
    if level == "summary":
        said = (row.what_happened, _part("why", row.why), _part("correct", row.what_was_correct))
        line = f"{_fitting(head, TOKENS['metadata'])}: {'; '.join(filter(None, said))}"
        return _fitting(line, TOKENS["summary"])
    parts = (
        _folded(head),
        _part("what happened", row.what_happened),
        _part("what was correct", row.what_was_correct),
        _part("why", row.why),
        _part("file", row.path),
        _part("todo", row.todo),
        f"decided by: {row.source} {row.guard}".rstrip(),
        f"agent {row.agent}, job {row.job}, phase {row.phase}, step {row.step}",
        _part("task", row.task),
    )
    return "\n".join(filter(None, parts))


def situation(row: Row[Any]) -> str:
    """The texts by which a trace is found."""
    return "\n".join(
        (row.task, row.todo, row.what_happened, row.what_was_correct, row.why, row.guard, row.tool,
         row.path)
    )  # fmt: skip


def _part(name: str, text: str) -> str:
    return f"{name}: {_folded(text)}" if text else ""


def _folded(text: str) -> str:
    """In one line: what an agent recorded must not look like a further trace, or like a heading."""
    return " ".join(text.split())


def _fitting(line: str, tokens: int) -> str:
    """The line, cut where it has more tokens."""
    line = _folded(line)
    if count(line) <= tokens:
        return line
    low, high = 0, min(len(line), tokens * 12)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(f"{line[:middle]}…") <= tokens else (low, middle - 1)
    return f"{line[:low].rstrip()}…"


def redact_trace(row: dict[str, Any]) -> dict[str, Any]:
    """The row with everything in its texts hidden that looks like a credential."""
    return row | {name: redact(row[name]) for name in PROSE}
