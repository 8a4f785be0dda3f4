"""Layout of the timeline: phases over working time, with marks for rewinds and waits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cli.report.charts import (
    GAP,
    LANE,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    Box,
    Tick,
    chart_box,
    round_chart_scale,
)
from cli.report.report_content import PhaseLine, Wait
from cli.report.value_formats import format_duration

LABEL_WIDTH = 16
"""Minimum width of a phase's bar that shows its number."""
KINDS = ("strategic", "tactical")
_STEPS = (
    *(1, 2, 5, 10, 15, 30),
    *(60 * minutes for minutes in (1, 2, 5, 10, 15, 30)),
    *(3600 * hours for hours in (1, 2, 3, 6, 12, 24, 48, 96, 240)),
)
"""Round intervals for a time axis, in seconds."""


@dataclass(frozen=True)
class PhaseBar:
    """The box of one phase."""

    phase: PhaseLine
    box: Box
    label: float | None
    """Horizontal position of its number; None if there is no room."""


@dataclass(frozen=True)
class WaitMark:
    """The mark of one wait."""

    wait: Wait
    seconds: float
    x: float


@dataclass(frozen=True)
class Timeline:
    """Phases over working time, strategic ones above, with marks for rewinds and waits."""

    stretches: list[PhaseBar]
    rewinds: list[PhaseBar]
    pauses: list[WaitMark]
    below: list[Tick]
    height: float = TOP + 2 * LANE + GAP + 40
    floor: float = TOP + 2 * LANE + GAP + 16


def lay_out_timeline(
    phases: Sequence[PhaseLine], waits: Sequence[Wait], until: datetime
) -> Timeline:
    """Lay out phases over working time; waits are marks, since their length would hide the rest.

    Args:
        until: Assumed end of phases and waits that have not ended.
    """
    spans = [(wait, wait.started, wait.ended or until) for wait in waits]

    def seconds_at_work(moment: datetime) -> float:
        """Return seconds since the first phase began, without waits up to the moment."""
        past = sum(
            max(0.0, (min(ended, moment) - max(began, start)).total_seconds())
            for _, began, ended in spans
        )
        return max(0.0, (moment - start).total_seconds() - past)

    if not phases:
        return Timeline([], [], [], [])
    start = phases[0].started
    total = max(seconds_at_work(phase.ended or until) for phase in phases) or 1.0
    ratio = (WIDTH - LEFT - RIGHT) / total
    stretches = []
    for phase in phases:
        begins, ends = seconds_at_work(phase.started), seconds_at_work(phase.ended or until)
        x, width = LEFT + begins * ratio, max(1.0, (ends - begins) * ratio - 1)
        row = KINDS.index(phase.kind)
        look = f"{phase.kind} undone" if phase.undone else phase.kind
        box = chart_box(x, TOP + row * (LANE + GAP), width, LANE, look)
        stretches.append(PhaseBar(phase, box, x + width / 2 if width >= LABEL_WIDTH else None))
    return Timeline(
        stretches,
        [stretch for stretch in stretches if stretch.phase.purpose == "rewind"],
        [
            WaitMark(
                wait,
                (ended - began).total_seconds(),
                round(LEFT + seconds_at_work(began) * ratio, 1),
            )
            for wait, began, ended in spans
            if began >= start
        ],
        [
            Tick(round(LEFT + seconds * ratio, 1), format_duration(seconds))
            for seconds in _timeline_seconds(total)
        ],
    )


def _timeline_seconds(total: float) -> list[float]:
    """Return at most seven round times from 0 on, in seconds."""
    if total < 5:
        return [seconds for seconds in round_chart_scale(total) if seconds <= total]
    step = next((step for step in _STEPS if total / step <= 6), total / 6)
    return [step * n for n in range(int(total / step) + 1)]
