"""Numbers of the report's charts, as shares of 100; the template draws them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cli.report.report_content import PhaseLine, Wait

Layers = Sequence[tuple[str, Sequence[float]]]
"""Class in the style sheet and values of each stacked layer, the lowest first."""
FEWEST = 40
"""Columns for which there is room at least, so that a short job's bars do not form a wall."""


@dataclass(frozen=True)
class Stack:
    """Bars side by side: for each the class, the top and the height of its boxes."""

    columns: list[list[tuple[str, float, float]]]
    highest: float
    width: int


@dataclass(frozen=True)
class Span:
    """Where a phase lies in the time at work."""

    start: float
    width: float


def stack_bars(layers: Layers) -> Stack:
    """Return bars of stacked values; the highest reaches 100."""
    rows = list(zip(*(values for _, values in layers), strict=True))
    highest = max(map(sum, rows), default=0.0)
    columns = []
    for row in rows:
        floor, boxes = 100.0, []
        for (look, _), value in zip(layers, row, strict=True):
            height = 100 * max(0.0, value) / (highest or 1)
            floor -= height
            if height:
                boxes.append((look, round(floor, 2), round(height, 2)))
        columns.append(boxes)
    return Stack(columns, highest, max(len(columns), FEWEST))


def phase_spans(
    phases: Sequence[PhaseLine], waits: Sequence[Wait], until: datetime
) -> list[tuple[Span, float]]:
    """Return where each phase lies in the time at work, and its seconds at work.

    Waits count as no time, since a long one would hide the rest.

    Args:
        until: Assumed end of phases and waits that have not ended.
    """

    def seconds_at_work(moment: datetime) -> float:
        """Return seconds since the first phase began, without waits up to the moment."""
        past = sum(
            max(0.0, (min(wait.ended or until, moment) - max(wait.started, start)).total_seconds())
            for wait in waits
        )
        return max(0.0, (moment - start).total_seconds() - past)

    if not phases:
        return []
    start = phases[0].started
    marks = [(seconds_at_work(p.started), seconds_at_work(p.ended or until)) for p in phases]
    total = max(end for _, end in marks) or 1.0
    return [
        (
            Span(round(100 * begin / total, 2), round(max(0.5, 100 * (end - begin) / total), 2)),
            end - begin,
        )
        for begin, end in marks
    ]
