"""Layout of charts as numbers only; the template draws them and writes the text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cli.report.report_content import Bar, Habit, Repeats
from cli.trials.trial_summary import TrialConfigurationSummary

WIDTH = 960
LEFT, RIGHT, TOP = 64, 8, 8
HEIGHT = 150
"""Height of the bar area of a chart over steps."""
STRIP = 56
"""Height of the bar area of a chart over jobs."""
LANE, GAP = 26, 8


Layers = list[tuple[str, Sequence[float]]]
"""Style and values of each stacked layer."""


@dataclass(frozen=True)
class Box:
    """A rectangle; `look` is its class in the style sheet."""

    x: float
    y: float
    width: float
    height: float
    look: str


@dataclass(frozen=True)
class Tick:
    """A mark on an axis with its label."""

    at: float
    label: str


@dataclass(frozen=True)
class Column:
    """The boxes of one bar of the report."""

    bar: Bar | Repeats
    boxes: list[Box]


@dataclass(frozen=True)
class Chart:
    """Bars over steps or over jobs."""

    columns: list[Column]
    across: list[Tick]
    """Value ticks, drawn as lines across."""
    below: list[Tick]
    """Step or job ticks below the axis."""
    height: float = TOP + HEIGHT + 20
    floor: float = TOP + HEIGHT


@dataclass(frozen=True)
class ShareRow:
    """The share completed of one configuration, and its interval."""

    name: str
    completed: int
    ended: int
    y: float
    left: float
    width: float
    middle: float | None
    """Horizontal position of the share; None without runs that count."""


@dataclass(frozen=True)
class ShareChart:
    """Shares from 0 to 100 %, a row for each configuration."""

    rows: list[ShareRow]
    below: list[Tick]
    floor: float
    height: float


def share_chart(configurations: Sequence[TrialConfigurationSummary]) -> ShareChart:
    """Chart the share of runs completed by each configuration, with its interval."""
    start, wide = 2.5 * LEFT, WIDTH - 2.5 * LEFT - 4 * RIGHT

    def place(share: float) -> float:
        return round(start + share * wide, 1)

    rows = [
        ShareRow(
            name=each.name,
            completed=each.completed,
            ended=each.ended,
            y=TOP + LANE * (index + 0.5),
            left=place(each.low),
            width=round((each.high - each.low) * wide, 1),
            middle=place(each.completed / each.ended) if each.ended else None,
        )
        for index, each in enumerate(configurations)
    ]
    floor = float(TOP + LANE * len(rows))
    below = [Tick(place(percent / 100), f"{percent} %") for percent in (0, 25, 50, 75, 100)]
    return ShareChart(rows, below, floor, floor + 24)


def token_chart(bars: Sequence[Bar]) -> Chart:
    """Chart tokens by step: cached prompt, uncached prompt and reply."""
    return _step_chart(
        bars,
        [
            ("cached", [bar.cached_tokens for bar in bars]),
            ("fresh", [bar.prompt_tokens - bar.cached_tokens for bar in bars]),
            ("reply", [bar.completion_tokens for bar in bars]),
        ],
    )


def cost_chart(bars: Sequence[Bar]) -> Chart:
    """Chart cost by step."""
    return _step_chart(bars, [("fresh", [bar.cost for bar in bars])])


def prompt_chart(bars: Sequence[Bar]) -> Chart:
    """Chart the largest prompt of each bar."""
    return _step_chart(bars, [("fresh", [bar.largest_prompt for bar in bars])])


def repeat_chart(habit: Habit) -> Chart:
    """Chart how often each job repeated a mistake: refusals, and above them trial matches."""
    jobs = habit.jobs
    layers: Layers = [
        ("fresh", [job.refused for job in jobs]),
        ("cached", [job.tried for job in jobs]),
    ]
    columns, across, middles = _stacked_columns(jobs, layers, STRIP)
    marked = [
        Tick(middle, "this job" if job.here else f"{place:,}")
        for place, (job, middle) in enumerate(zip(jobs, middles, strict=True), 1)
        if job.here or (place == 1 and len(jobs) > 1 and not jobs[0].here)
    ]
    last = Tick(middles[-1], f"{len(jobs):,}") if jobs and not any(j.here for j in jobs) else None
    below = [*marked, last] if last and len(jobs) > 1 else marked
    return Chart(columns, [across[0], across[-1]], below, TOP + STRIP + 20, TOP + STRIP)


def _step_chart(bars: Sequence[Bar], layers: Layers) -> Chart:
    columns, across, middles = _stacked_columns(bars, layers, HEIGHT)
    below = [Tick(middles[place], f"{number:,}") for number, place in _numbered_bars(bars)]
    return Chart(columns, across, below)


def _stacked_columns(
    bars: Sequence[Bar | Repeats], layers: Layers, tall: int
) -> tuple[list[Column], list[Tick], list[float]]:
    """Return the columns, the value ticks, and the middle of each column."""
    highest = max((sum(values) for values in zip(*(v for _, v in layers), strict=True)), default=0)
    ticks = round_chart_scale(highest)
    top = ticks[-1] or 1
    step = (WIDTH - LEFT - RIGHT) / max(1, len(bars))
    # Cap the width, so that a short job's bars do not form a wall.
    width = min(24.0, step * 0.86)
    columns = []
    for place, bar in enumerate(bars):
        floor, boxes = float(TOP + tall), []
        for look, values in layers:
            height = max(0.0, values[place]) / top * tall
            floor -= height
            if height:
                boxes.append(chart_box(LEFT + place * step, floor, width, height, look))
        columns.append(Column(bar, boxes))
    across = [
        Tick(round(TOP + tall * (1 - value / top), 1), short_chart_number(value)) for value in ticks
    ]
    middles = [round(LEFT + place * step + width / 2, 1) for place in range(len(bars))]
    return columns, across, middles


def round_chart_scale(highest: float) -> list[float]:
    """Return round values from 0 to at least `highest`, spaced 1, 2 or 5 times a power of ten."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.9999)
    return [round(step * n, 12) for n in range(math.ceil(highest / step - 1e-9) + 1)]


def short_chart_number(value: float) -> str:
    """Format as `0`, `0.005`, `800`, `12k` or `1.5M`."""
    for factor, mark in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= factor:
            return f"{value / factor:.3g}{mark}"
    return f"{value:.3g}"


def chart_box(x: float, y: float, width: float, height: float, look: str) -> Box:
    return Box(round(x, 1), round(y, 1), round(width, 1), round(height, 1), look)


def _numbered_bars(bars: Sequence[Bar]) -> list[tuple[int, int]]:
    """Return round step numbers, and the indexes of the bars that contain them."""
    if not bars:
        return []
    numbers = [max(bars[0].first, int(value)) for value in round_chart_scale(bars[-1].last)]
    wide = bars[0].last - bars[0].first + 1
    places = [(number, (number - bars[0].first) // wide) for number in dict.fromkeys(numbers)]
    return [(number, place) for number, place in places if place < len(bars)]
