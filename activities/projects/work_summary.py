"""The summary of a job's work that its project gets, within a limit of tokens."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from activities.job.snapshot import Snapshot
from activities.text import tokens
from protocol.endings import COMPLETION_FILE
from protocol.short_text import first_few, shorten_to_start


@dataclass(frozen=True)
class WorkSummary:
    """A job's summary of its work."""

    text: str
    room: int
    """Token limit of the text."""
    tail: str
    """Text that the system appends: changed files and unresolved points."""

    @property
    def fits_room(self) -> bool:
        return tokens.count_tokens(self.text) <= self.room

    @property
    def clipped_text(self) -> str:
        return tokens.clip_to_tokens(self.text, self.room, "output/completion.json has all")


@dataclass(frozen=True)
class CompletionReport:
    """A job's final statements on its work."""

    summary: str = ""
    notes: str = ""
    unresolved: Sequence[str] = ()


def read_completion_report(snapshot: Snapshot) -> CompletionReport:
    result: dict[str, Any] = {}
    if (raw := snapshot.read_bytes(COMPLETION_FILE)) is not None:
        result = json.loads(raw)
    return CompletionReport(
        str(result.get("summary") or ""),
        str(result.get("notes") or ""),
        result.get("unresolved") or (),
    )


def summarize_work(report: CompletionReport, changed: list[str], most: int) -> WorkSummary:
    """Build the summary from the job's own text, changed files and unresolved points."""
    tail = f"\nFiles changed: {first_few(changed, 30) or 'none'}."
    if report.unresolved:
        tail += f"\nUnresolved: {shorten_to_start('; '.join(report.unresolved), 1000)}."
    text = f"{report.summary}\n{report.notes}" if report.notes else report.summary
    return WorkSummary(text, max(most - tokens.count_tokens(tail), most // 2), tail)
