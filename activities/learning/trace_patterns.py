"""Find patterns in traces: what is refused or corrected repeatedly. Pure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import Row

from activities.learning.guard_precision import normalise_trace_path
from activities.search.text_likeness import compute_text_likeness
from protocol.trace_requests import CLARIFICATION

MIN_LIKENESS = 0.45
"""Likeness by letters from which two situations count as the same."""
COUNTED_TYPES = ("violation", "correction")
PatternTrend = Literal["growing", "steady", "falling"]


@dataclass(frozen=True)
class Pattern:
    agent: str
    project: str
    source: str
    guard: str
    tool: str
    traces: tuple[Row[Any], ...]
    trend: PatternTrend

    @property
    def jobs(self) -> int:
        return len({row.job for row in self.traces})

    @property
    def paths(self) -> list[str]:
        return sorted({normalise_trace_path(row.path) for row in self.traces if row.path})

    @property
    def lesson(self) -> str:
        texts = Counter[str](map(_pattern_correction_text, self.traces))
        return max(sorted(texts), key=lambda text: (bool(text), texts[text]))

    @property
    def line(self) -> str:
        what = self.tool or "what it did"
        return (
            f"{self.agent}: {what} met with {self.source} {self.guard} {len(self.traces)} times "
            f"in {self.jobs} jobs, {self.trend}: {self.lesson[:120]}"
        )


def extract_patterns(rows: Sequence[Row[Any]]) -> list[Pattern]:
    """Return the patterns, the most frequent first, without what guards on trial saw."""
    counted = [row for row in rows if row.type in COUNTED_TYPES and not row.stage]
    if not counted:
        return []
    middle = (min(row.at for row in counted) + max(row.at for row in counted)) / 2
    groups: dict[tuple[str, str, str, str, str], list[Row[Any]]] = {}
    for row in sorted(counted, key=lambda row: row.id):
        key = (row.agent, row.project, row.source, row.guard, row.tool)
        groups.setdefault(key, []).append(row)
    patterns = [
        Pattern(*key, tuple(alike), _pattern_trend(alike, middle))
        for key, members in groups.items()
        for alike in _cluster_alike(members)
    ]
    return sorted(patterns, key=lambda pattern: (-len(pattern.traces), pattern.traces[0].id))


def pattern_reason(row: Row[Any]) -> str:
    """Return the text to compare; the question if an answer, which is often just `Yes.`"""
    text: str = row.what_was_correct or row.why or row.what_happened
    return row.why if _is_answer_to_question(row) else text


def _pattern_correction_text(row: Row[Any]) -> str:
    text: str = row.what_was_correct or row.why
    return f"{row.what_happened} {text}" if _is_answer_to_question(row) else text


def _is_answer_to_question(row: Row[Any]) -> bool:
    return bool(row.source == "person" and row.guard == CLARIFICATION)


def _cluster_alike(members: list[Row[Any]]) -> list[list[Row[Any]]]:
    clusters: list[tuple[str, list[Row[Any]]]] = []
    known: dict[str, list[Row[Any]]] = {}
    for row in members:
        text = pattern_reason(row)
        if text in known:
            known[text].append(row)
            continue
        scores = compute_text_likeness(text, [first for first, _ in clusters])
        best = max(range(len(scores)), key=scores.__getitem__, default=-1)
        if best >= 0 and scores[best] >= MIN_LIKENESS:
            known[text] = clusters[best][1]
            known[text].append(row)
        else:
            known[text] = [row]
            clusters.append((text, known[text]))
    return [alike for _, alike in clusters]


def _pattern_trend(rows: Sequence[Row[Any]], middle: float) -> PatternTrend:
    late = sum(row.at > middle for row in rows)
    early = len(rows) - late
    if late > early * 1.5:
        return "growing"
    return "falling" if early > late * 1.5 else "steady"
