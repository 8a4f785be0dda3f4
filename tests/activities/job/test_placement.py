"""Which phase of the plan a list stands for."""

import pytest

from activities.job.placement import handed_over_position, unplaced_items
from activities.job.plan_and_todo_files import parse_plan
from protocol.scope_ledger import ScopeItem, Statement

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


def item(text: str, source: str = "brief", *paths: str) -> ScopeItem:
    statement = Statement(text=text, paths=list(paths))
    return ScopeItem.model_validate(
        {"id": text, "text": text, "source": source, "statements": [statement]}
    )


@pytest.mark.parametrize(
    ("text", "placed"),
    [
        ("Keep it short and use the active voice, please.", True),
        ("Never invent numbers.", True),
        ("Erfinde keine Zahlen.", True),
        ("Fasse dich kurz.", True),
        ("One more thing: the old logo must no longer be used.", True),
        ("Brew on.", True),
        ("Write a poem.", False),
        ("Keep a list of sources.", False),
        ("Keep it short, but do not forget to cite.", False),
        ("Write a page and don't mention prices.", False),
        ("The report must cover prices.", False),
    ],
)
def test_what_says_how_the_work_is_done_needs_no_place(text: str, placed: bool) -> None:
    plan = PLAN + "- [ ] brew the rest\n"
    scope = [item(text), item("Sort the shelf of cups.")]
    assert [each.text for each in unplaced_items(scope, plan, [])] == (
        [scope[1].text] if placed else [scope[0].text, scope[1].text]
    )


def test_a_file_or_what_a_person_told_needs_a_place() -> None:
    named = item("Keep it short.", "brief", "output/a.md")
    told, own = item("Write a poem.", "told"), item("Write a song.", "added")
    assert unplaced_items([named, told, own], PLAN, []) == [named, told]
