"""Which phase of the plan a list stands for."""

from __future__ import annotations

import pytest

from activities.job.placement import handed_over_position
from activities.job.plan_and_todo_files import parse_plan

PLAN = """# Plan

## Phase 1: Survey, B1
- [ ] read it again in other words

## Phase 2: Brew, B2-B3
- [ ] brew

## Phase 3: Brewing late
- [ ] brew on
"""


@pytest.mark.parametrize(
    ("name", "position"),
    [
        ("Phase 2", 2),
        ("Brew, B2-B3", 2),
        ("brew", 2),
        ("Brewing late: the last", 3),
        ("Something else", 1),
        ("", 1),
    ],
)
def test_a_list_stands_for_the_phase_that_its_name_begins_like(name: str, position: int) -> None:
    assert handed_over_position(parse_plan(PLAN), name) == position
