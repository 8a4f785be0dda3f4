"""Positions of the parts of charts."""

from __future__ import annotations

import pytest

from cli.report import charts, timeline_chart, value_formats
from cli.report.report_content import Wait
from tests.cli.report.samples import at, bar, phase


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0, [0, 1]),
        (7, [0, 2, 4, 6, 8]),
        (8, [0, 2, 4, 6, 8]),
        (0.0022, [0, 0.001, 0.002, 0.003]),
        (123_456, [0, 50_000, 100_000, 150_000]),
    ],
)
def test_axes_have_round_values_that_reach_the_highest(highest: float, ticks: list[float]) -> None:
    assert charts.round_chart_scale(highest) == ticks


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "–"),  # noqa: RUF001
        (4.25, "4.25 s"),
        (180, "3 min"),
        (185, "3 min 05 s"),
        (7800, "2 h 10 min"),
        (76 * 3600, "3 d 4 h"),
    ],
)
def test_durations(seconds: float | None, expected: str) -> None:
    assert value_formats.format_duration(seconds) == expected


def test_sizes_and_short_numbers() -> None:
    assert [value_formats.format_size(n) for n in (0, 999, 27_000, 1_200_000)] == [
        "0 B",
        "999 B",
        "27.0 kB",
        "1.2 MB",
    ]
    assert [charts.short_chart_number(n) for n in (0, 0.005, 800, 12_000, 1_500_000)] == [
        "0",
        "0.005",
        "800",
        "12k",
        "1.5M",
    ]


def test_a_stack_is_as_high_as_its_tokens() -> None:
    chart = charts.token_chart(
        [bar(1, prompt_tokens=3000, cached_tokens=1000, completion_tokens=1000)]
    )
    [column] = chart.columns
    heights = {box.look: box.height for box in column.boxes}
    assert heights == {"cached": 37.5, "fresh": 75.0, "reply": 37.5}
    assert min(box.y for box in column.boxes) == charts.TOP
    assert [tick.label for tick in chart.across] == ["0", "1k", "2k", "3k", "4k"]


def test_waits_take_no_room_on_the_timeline() -> None:
    # Ten of the second phase's hundred seconds are work.
    phases = [phase(1, "strategic"), phase(2, ended=at(110))]
    line = timeline_chart.lay_out_timeline(
        phases, [Wait(reason="paused", started=at(15), ended=at(105))], at(110)
    )
    first, second = (each.box for each in line.stretches)
    assert first.width == second.width
    assert (first.y < second.y, second.x > first.x) == (True, True)
    [pause] = line.pauses
    assert pause.seconds == 90
    assert pause.x == pytest.approx(second.x + second.width / 2, abs=1)
    assert line.below[-1].label == "20 s"


def test_a_wait_that_is_not_over_lasts_until_now() -> None:
    phases = [phase(1, ended=at(10))]
    line = timeline_chart.lay_out_timeline(phases, [Wait(reason="budget", started=at(10))], at(70))
    assert [pause.seconds for pause in line.pauses] == [60]


def test_everything_stays_inside_the_picture() -> None:
    phases = [phase(n, "strategic" if n % 2 else "tactical") for n in range(1, 401)]
    line = timeline_chart.lay_out_timeline(phases, [], at(4000))
    assert all(each.box.x + each.box.width <= charts.WIDTH for each in line.stretches)
    chart = charts.prompt_chart([bar(n) for n in range(1, 161)])
    last = chart.columns[-1].boxes[-1]
    assert last.x + last.width <= charts.WIDTH
    assert {tick.label for tick in chart.below} >= {"1", "50", "100", "150"}
