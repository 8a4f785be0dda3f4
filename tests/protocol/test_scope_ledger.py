"""The ledger: what completes an item, what leaves it open, what is recorded separately."""

from __future__ import annotations

import pytest

from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.scope_ledger import (
    MAX_ITEMS,
    ScopeItem,
    complete_ticked_scope_items,
    scope_counts,
    scope_from_plan,
    scope_from_texts,
    scope_ledger_line,
    scope_size_fault,
)
from protocol.todo_list import Todo


def state(*todos: Todo, items: list[ScopeItem], purpose: str = "work") -> JobState:
    kind = "tactical" if purpose == "work" else "strategic"
    return JobState(
        phase=Phase(number=2, kind=kind, purpose=purpose, name="Look", todos=list(todos)),
        scope=items,
    )


def todo(number: int, *items: str) -> Todo:
    return Todo(id=number, content=f"Step {number}", items=list(items))


def statuses(items: list[ScopeItem]) -> dict[str, str]:
    return {item.id: item.status for item in items}


def test_a_ledger_of_any_texts_fits_into_a_payload() -> None:
    job = state(todo(1), items=[], purpose="transition")
    with pytest.raises(ValueError, match="more cannot be added"):
        for number in range(MAX_ITEMS):
            job.add_item(f"{number} " + "茶" * 500)
    for item in job.open_items:
        job.drop_item(item.id, "\N{TEACUP WITHOUT HANDLE}" * 500)
    assert not job.open_items
    assert len(job.model_dump_json().encode()) < 1_500_000
    assert scope_size_fault(scope_from_texts(["tea"] * MAX_ITEMS)) is None
    assert "items" in str(scope_size_fault(scope_from_texts(["tea"] * (MAX_ITEMS + 1))))
    assert "bytes" in str(scope_size_fault(scope_from_texts(["茶" * 400] * 1000)))


def test_a_todo_completes_what_it_names_once_no_open_todo_covers_it() -> None:
    job = state(todo(1, "S1", "S2"), todo(2, "S2"), items=scope_from_texts(["tea", "water"]))
    job.complete_todo(1)
    assert statuses(job.scope) == {"S1": "completed", "S2": "open"}
    job.complete_todo(2)
    assert statuses(job.scope) == {"S1": "completed", "S2": "completed"}


def test_a_todo_that_names_none_covers_the_next_open_item() -> None:
    job = state(todo(1), todo(2), items=scope_from_texts(["tea", "water"]))
    assert job.covered_by(job.phase.todos[0]) == ["S1"]
    job.complete_todo(1)
    assert statuses(job.scope) == {"S1": "completed", "S2": "open"}
    job.complete_todo(2)
    assert not job.open_items


def test_a_todo_that_names_none_completes_no_item_behind_one_that_another_names() -> None:
    job = state(todo(1), todo(2, "S1"), items=scope_from_texts(["tea", "water"]))
    assert job.covered_by(job.phase.todos[0]) == ["S1"]
    job.complete_todo(1)
    assert statuses(job.scope) == {"S1": "open", "S2": "open"}
    job.complete_todo(2)
    assert statuses(job.scope) == {"S1": "completed", "S2": "open"}


@pytest.mark.parametrize("purpose", ["bootstrap", "transition", "rewind", "final"])
def test_predefined_todos_cover_nothing(purpose: str) -> None:
    job = state(todo(1), items=scope_from_texts(["tea"]), purpose=purpose)
    job.complete_todo(1)
    assert statuses(job.scope) == {"S1": "open"}


def test_items_from_the_plan_are_not_covered_by_todos_that_do_not_name_them() -> None:
    job = state(todo(1), todo(2, "P2"), items=scope_from_plan([(False, "brew"), (False, "pour")]))
    job.complete_todo(1)
    job.complete_todo(2)
    assert statuses(job.scope) == {"P1": "open", "P2": "completed"}


def test_a_ticked_box_completes_its_item_and_one_that_vanished_leaves_it_open() -> None:
    items = scope_from_plan([(False, "Boil the water"), (False, "Brew"), (True, "Buy tea")])
    assert statuses(items) == {"P1": "open", "P2": "open", "P3": "completed"}
    complete_ticked_scope_items(items, [(True, "Boil  the water"), (True, "Something else")])
    assert statuses(items) == {"P1": "completed", "P2": "open", "P3": "completed"}


def test_an_unticked_box_does_not_open_its_item_again() -> None:
    items = scope_from_plan([(True, "Brew")])
    complete_ticked_scope_items(items, [(False, "Brew")])
    assert statuses(items) == {"P1": "completed"}


def test_boxes_with_the_same_text_count_one_each() -> None:
    items = scope_from_plan([(False, "Check"), (False, "Check")])
    complete_ticked_scope_items(items, [(True, "Check")])
    assert statuses(items) == {"P1": "completed", "P2": "open"}
    complete_ticked_scope_items(items, [(True, "Check")])
    assert statuses(items) == {"P1": "completed", "P2": "open"}
    complete_ticked_scope_items(items, [(True, "Check"), (True, "Check")])
    assert statuses(items) == {"P1": "completed", "P2": "completed"}


def test_a_ticked_box_that_begins_with_its_id_completes_an_added_item() -> None:
    job = state(todo(1), items=[*scope_from_texts(["Brew"]), *scope_from_plan([(False, "Boil")])])
    for text in ("cups", "spoons", "milk"):
        job.add_item(text)
    boxes = [
        (True, "A1: cups are there"),
        (True, "**A2** spoons"),
        (False, "A3 milk"),
        (True, "A33"),
    ]
    complete_ticked_scope_items(job.scope, boxes)
    assert statuses(job.scope) == {
        "S1": "open", "P1": "open", "A1": "completed", "A2": "completed", "A3": "open"
    }  # fmt: skip


def test_boxes_do_not_complete_items_that_were_given() -> None:
    items = scope_from_texts(["Brew"])
    complete_ticked_scope_items(items, [(True, "Brew")])
    assert statuses(items) == {"S1": "open"}


def test_added_and_dropped_items_are_kept_apart_from_the_original_ones() -> None:
    job = state(todo(1, "A1"), items=scope_from_texts(["tea", "water"]))
    assert job.add_item("cups").id == "A1"
    job.drop_item("S2", "There is no water.")
    job.complete_todo(1)
    assert scope_counts(job.scope) == {
        "original": 2, "completed": 0, "added": 1, "dropped": 1, "open": 1
    }  # fmt: skip
    assert scope_ledger_line(job.scope) == "0 of 2 items completed; of 1 added 1; dropped 1"
    assert [item.text for item in job.scope if item.original] == ["tea", "water"]
    assert job.add_item("spoons").id == "A2"


def test_only_an_open_item_can_be_dropped() -> None:
    job = state(todo(1, "S1"), items=scope_from_texts(["tea", "water"]))
    job.complete_todo(1)
    for wrong in ("S1", "S9"):
        with pytest.raises(ValueError, match=f"no open item {wrong}. The open items are: S2"):
            job.drop_item(wrong, "no")


def test_what_an_activity_reports_makes_the_ledgers_equal() -> None:
    ours = state(todo(1), items=scope_from_texts(["tea", "water"]))
    theirs = ours.model_copy(deep=True)
    theirs.drop_item("S1", "cold")
    theirs.add_item("cups")
    ours.take_items(theirs.items_changed_since(ours.scope))
    assert ours == theirs
    assert theirs.items_changed_since(ours.scope) == []
