"""Positions of the parts of charts."""

import pytest

from cli.report import charts, value_formats
from cli.report.report_content import Wait
from tests.cli.report.samples import at, phase


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


def test_sizes() -> None:
    assert [value_formats.format_size(n) for n in (0, 999, 27_000, 1_200_000)] == [
        "0 B",
        "999 B",
        "27.0 kB",
        "1.2 MB",
    ]


def test_a_stack_is_as_high_as_its_values() -> None:
    stack = charts.stack_bars([("cached", [1, 0]), ("fresh", [2, 1]), ("reply", [1, 0])])
    assert stack.highest == 4
    assert stack.columns == [
        [("cached", 75, 25), ("fresh", 25, 50), ("reply", 0, 25)],
        [("fresh", 75, 25)],
    ]
    assert charts.stack_bars([("fresh", [])]).columns == []


def test_waits_take_no_room_on_the_timeline() -> None:
    # Ten of the second phase's hundred seconds are work.
    phases = [phase(1, "strategic"), phase(2, ended=at(110))]
    waits = [Wait(reason="paused", started=at(15), ended=at(105))]
    assert charts.phase_spans(phases, waits, at(110)) == [
        (charts.Span(0, 50), 10),
        (charts.Span(50, 50), 10),
    ]


def test_a_wait_that_is_not_over_lasts_until_now() -> None:
    phases = [phase(1), phase(2, ended=None)]
    spans = charts.phase_spans(phases, [Wait(reason="budget", started=at(15))], at(70))
    assert [seconds for _, seconds in spans] == [10, 5]


def test_everything_stays_inside_the_picture() -> None:
    phases = [phase(n, "strategic" if n % 2 else "tactical") for n in range(1, 401)]
    spans = charts.phase_spans(phases, [], at(4000))
    assert all(span.start + span.width <= 100.5 for span, _ in spans)
