"""The ledger: what completes an item, what leaves it open, what is recorded separately."""

import hashlib
import time

import pytest

from protocol.evidence import SeenWork
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.scope_ledger import (
    MAX_ITEMS,
    PAST_STEPS,
    ScopeItem,
    Statement,
    expand_item_ids,
    fold_past_steps,
    is_empty_reason,
    scope_counts,
    scope_from_texts,
    scope_ledger_line,
    scope_size_fault,
    sync_plan_steps,
    vanished_steps,
)
from protocol.todo_list import Todo
from tests.soak import patient, soak

WORK = SeenWork(calls=1, files=["output/a.md"])
LOOK = SeenWork(looks=1, looked=["documents/tea.md"])


def state(*todos: Todo, items: list[ScopeItem], purpose: str = "work") -> JobState:
    kind = "tactical" if purpose == "work" else "strategic"
    covers = [item.id for item in items]
    phase = Phase(
        number=2, kind=kind, purpose=purpose, name="Look", todos=list(todos), covers=covers
    )
    return JobState(phase=phase, scope=items)


def todo(number: int, *items: str) -> Todo:
    return Todo(id=number, content=f"Step {number}", items=list(items))


def statuses(items: list[ScopeItem]) -> dict[str, str]:
    return {item.id: item.status for item in items}


def complete(job: JobState, number: int, seen: SeenWork = WORK, notes: str = "") -> None:
    """Complete a todo after this was seen for it."""
    job.seen = seen.model_copy(deep=True)
    job.complete_todo(number, notes, commit="c" * 40)


def steps(*texts: str, phase: int = 1) -> list[ScopeItem]:
    return sync_plan_steps([], [(phase, text) for text in texts])


def test_a_ledger_of_any_texts_fits_into_a_payload() -> None:
    job = state(todo(1), items=[], purpose="transition")
    with pytest.raises(ValueError, match="more cannot be added"):
        for number in range(MAX_ITEMS):
            job.add_item(f"{number} " + "茶" * 240)
    cups = "No cup is there. " + "\N{TEACUP WITHOUT HANDLE}" * 500
    job.drop_items([item.id for item in job.open_items], cups)
    assert not job.open_items
    assert len(job.without_notes().model_dump_json().encode()) < 1_500_000
    assert scope_size_fault(scope_from_texts(["tea"] * MAX_ITEMS)) is None
    assert "items" in str(scope_size_fault(scope_from_texts(["tea"] * (MAX_ITEMS + 1))))
    assert "bytes" in str(scope_size_fault(scope_from_texts(["茶" * 400] * 1000)))


def test_a_todo_completes_what_it_names_once_no_open_todo_covers_it() -> None:
    job = state(todo(1, "S1", "S2"), todo(2, "S2"), items=scope_from_texts(["tea", "water"]))
    complete(job, 1)
    assert statuses(job.scope) == {"S1": "completed", "S2": "open"}
    complete(job, 2)
    assert statuses(job.scope) == {"S1": "completed", "S2": "completed"}
    assert job.scope[0].evidence is not None
    assert job.scope[0].evidence.line == "phase 2, todo 1: 1 call; output/a.md"


@pytest.mark.parametrize(
    ("seen", "notes", "status", "kind"),
    [
        (SeenWork(), "Everything is done.", "open", None),
        (LOOK, "", "open", None),
        (LOOK, "All is well.", "open", None),
        (LOOK, "tea.md says that it is green.", "completed", "look"),
        (LOOK, "Read documents/tea.md: nothing amiss.", "completed", "look"),
        (LOOK, "Read otea.md.", "open", None),
        (
            SeenWork(looks=1, looked=["npx eslint ."]),
            "eslint has nothing to say.",
            "completed",
            "look",
        ),
        (SeenWork(looks=1, looked=["npx eslint ."]), "Nothing to say.", "open", None),
        (SeenWork(looks=1, runs=1, looked=["npx eslint ."]), "没有问题。", "completed", "look"),
        (SeenWork(looks=1, runs=1, looked=["npx eslint ."]), " - ", "open", None),
        (WORK, "", "completed", "work"),
        (SeenWork(calls=1, commands=["make: exit code 0"]), "", "completed", "work"),
    ],
)
def test_an_item_is_completed_by_what_was_seen(
    seen: SeenWork, notes: str, status: str, kind: str | None
) -> None:
    job = state(todo(1, "S1"), todo(2), items=scope_from_texts(["tea"]))
    complete(job, 1, seen, notes)
    [item] = job.scope
    assert item.status == status
    assert (item.evidence.kind if item.evidence else None) == kind
    # What was seen belongs to the todo that is completed, not to the next one.
    assert job.seen == SeenWork()


def test_a_condition_that_held_is_seen_work_once_there_was_any() -> None:
    job = state(todo(1, "S1"), items=scope_from_texts(["tea"]))
    job.phase_seen = WORK
    job.complete_todo(1, held="output/tea.md exists")
    assert job.scope[0].evidence is not None
    assert job.scope[0].evidence.kind == "check"
    assert job.scope[0].evidence.checks == ["output/tea.md exists: held"]


@pytest.mark.parametrize(("notes", "kind"), [("Done.", None), ("plan.md is there.", "look")])
def test_a_condition_that_held_before_any_work_is_a_look(notes: str, kind: str | None) -> None:
    job = state(todo(1, "S1"), items=scope_from_texts(["tea"]))
    job.complete_todo(1, notes, held="plan.md exists")
    evidence = job.scope[0].evidence
    assert (evidence.kind if evidence else None) == kind


def test_what_does_not_hold_leaves_the_item_open() -> None:
    job = state(todo(1, "S1", "S2"), items=scope_from_texts(["tea", "water"]))
    job.seen = WORK
    job.complete_todo(1, holds=lambda item: item.id != "S1")
    assert statuses(job.scope) == {"S1": "open", "S2": "completed"}


def test_a_todo_that_names_none_covers_the_next_open_item_of_its_phase() -> None:
    job = state(todo(1), todo(2), items=scope_from_texts(["tea", "water", "cups"]))
    job.phase.covers = ["S2", "S3"]
    assert job.covered_by(job.phase.todos[0]) == ["S2"]
    complete(job, 1)
    assert statuses(job.scope) == {"S1": "open", "S2": "completed", "S3": "open"}
    job.phase.shared = ["S3"]
    assert job.covered_by(job.phase.todos[1]) == []


def test_a_todo_that_names_none_completes_no_item_behind_one_that_another_names() -> None:
    job = state(todo(1), todo(2, "S1"), items=scope_from_texts(["tea", "water"]))
    assert job.covered_by(job.phase.todos[0]) == ["S1"]
    complete(job, 1)
    assert statuses(job.scope) == {"S1": "open", "S2": "open"}
    complete(job, 2)
    assert statuses(job.scope) == {"S1": "completed", "S2": "open"}


@pytest.mark.parametrize("purpose", ["bootstrap", "transition", "rewind", "final"])
def test_predefined_todos_cover_nothing(purpose: str) -> None:
    job = state(todo(1), items=scope_from_texts(["tea"]), purpose=purpose)
    complete(job, 1)
    job.complete_list()
    assert statuses(job.scope) == {"S1": "open"}


@pytest.mark.parametrize(
    ("seen", "after"),
    [
        (SeenWork(), {"S1": "open", "S2": "open", "P1": "open"}),
        (LOOK, {"S1": "open", "S2": "open", "P1": "completed"}),
        (WORK, {"S1": "completed", "S2": "open", "P1": "completed"}),
    ],
)
def test_a_list_that_is_done_does_what_its_phase_stands_for(
    seen: SeenWork, after: dict[str, str]
) -> None:
    job = state(todo(1), items=[*scope_from_texts(["tea", "water"]), *steps("Brew")])
    job.phase.complete(1)
    job.phase_seen = seen
    job.complete_list("c" * 40)
    # An open phase of the plan stands for the second item as well.
    job.complete_worked_items({"S2"})
    assert statuses(job.scope) == after


def test_an_item_of_several_phases_is_complete_when_the_last_list_is_done() -> None:
    job = state(todo(1), items=scope_from_texts(["tea"]))
    job.phase_seen = WORK
    job.complete_list("c" * 40)
    job.complete_worked_items({"S1"})
    assert statuses(job.scope) == {"S1": "open"}
    job.phase_seen = LOOK
    job.complete_list("d" * 40)
    job.complete_worked_items(set())
    assert statuses(job.scope) == {"S1": "completed"}
    assert job.scope[0].evidence is not None
    assert job.scope[0].evidence.files == ["output/a.md"]


def test_steps_follow_the_plan() -> None:
    first = steps("Boil the water", "Brew", "Brew")
    assert [item.id for item in first] == ["P1", "P2", "P3"]
    first[0].status = "completed"
    again = sync_plan_steps(first, [(1, "Boil the water"), (1, "Brew it"), (2, "Pour")])
    assert [(item.id, item.text, item.phase) for item in again] == [
        ("P1", "Boil the water", 1),
        # A new wording of the same step, which therefore keeps its id.
        ("P2", "Brew it", 1),
        ("P3", "Brew", 1),
        ("P4", "Pour", 2),
    ]
    boxes = [(False, "Boil the water"), (False, "Brew it"), (False, "Pour")]
    assert [item.id for item in vanished_steps(again, boxes)] == ["P3"]


def test_a_step_that_comes_back_is_the_same() -> None:
    items = steps("Boil", "Brew")
    gone = sync_plan_steps(items, [(1, "Boil")])
    assert [item.id for item in sync_plan_steps(gone, [(2, "Brew"), (1, "Boil")])] == ["P1", "P2"]


def test_added_and_dropped_items_are_kept_apart_from_the_original_ones() -> None:
    job = state(todo(1, "A1"), items=[*scope_from_texts(["tea", "water"]), *steps("Brew")])
    assert job.add_item("cups").id == "A1"
    job.drop_items(["S2"], "There is no water.")
    complete(job, 1)
    assert scope_counts(job.scope) == {
        "original": 2, "completed": 0, "added": 1, "dropped": 1, "open": 1,
        "steps": 1, "steps_completed": 0,
    }  # fmt: skip
    assert scope_ledger_line(job.scope) == "0 of 2 items completed; of 1 added 1; dropped 1"
    assert [item.text for item in job.scope if item.original] == ["tea", "water"]
    assert job.add_item("spoons").id == "A2"


def test_only_open_items_can_be_dropped_and_several_at_once() -> None:
    job = state(todo(1, "S1"), items=[*scope_from_texts(["tea", "water"]), *steps("a", "b", "c")])
    complete(job, 1)
    for wrong in ("S1", "S9"):
        with pytest.raises(ValueError, match=f"not open: {wrong}. Open are: S2, P1, P2, P3"):
            job.drop_items([wrong], "There is none of it.")
    assert [item.id for item in job.drop_items(["P1-P2", "S2"], "There is no water.")] == [
        *("S2", "P1", "P2"),
    ]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("B2", ["B2"]),
        ("B2-B4, S1", ["B2", "B3", "B4", "S1"]),
        ("B2–4 and P1", ["B2", "B3", "B4", "P1"]),  # noqa: RUF001
        ("B2 to B3", ["B2", "B3"]),
        ("B9-B7", []),
        ("version B2x, AB3", []),
        ("B1-P2", ["B1", "P2"]),
    ],
)
def test_ids_are_named_alone_or_in_ranges(text: str, ids: list[str]) -> None:
    assert expand_item_ids(text) == ids


@pytest.mark.parametrize(
    ("reason", "empty"),
    [
        ("-", True),
        ("n/a", True),
        ("Done elsewhere.", True),
        ("not needed", True),
        ("...", True),
        ("done", True),
        ("there is no network", False),
        ("kein Netz", False),
        ("没有网络连接", False),
        ("Cover water", True),
        ("Cover water: no data", False),
    ],
)
def test_a_reason_says_something(reason: str, empty: bool) -> None:
    assert is_empty_reason(reason, "Cover water") is empty


def test_what_an_activity_reports_makes_the_ledgers_equal() -> None:
    ours = state(todo(1), items=scope_from_texts(["tea", "water"])).without_notes()
    theirs = ours.model_copy(deep=True)
    theirs.drop_items(["S1"], "It is cold.")
    theirs.add_item("cups")
    ours.take_items(theirs.items_changed_since(ours.scope))
    assert ours == theirs.without_notes()
    assert theirs.items_changed_since(theirs.scope) == []


def test_a_long_plan_is_written_anew_in_no_time() -> None:
    """Each of 500 boxes is compared with each of 500 steps, within the time of a quick activity."""
    plans = [[(1, f"{text} {n}" + " of the long way" * 10) for n in range(500)] for text in "ab"]
    began = time.process_time()
    steps = sync_plan_steps(sync_plan_steps([], plans[0]), plans[1])
    assert len(steps) == 500
    assert time.process_time() - began < patient(5)


@pytest.mark.parametrize(
    ("seen", "notes", "status"),
    [
        (LOOK, "tea.md says nothing of water.", "completed"),
        (LOOK, "All is well.", "open"),
        (LOOK.model_copy(update={"kept": ["notes/tea.md"]}), "", "completed"),
    ],
)
def test_a_list_of_looks_completes_its_items_by_what_it_claims(
    seen: SeenWork, notes: str, status: str
) -> None:
    """One todo's notes speak for the list: a survey has more items than todos."""
    job = state(todo(1), items=scope_from_texts(["Read all of it", "Compare it"]))
    job.phase.complete(1, notes)
    job.phase_seen = seen
    job.complete_list()
    job.complete_worked_items(set())
    assert statuses(job.scope) == {"S1": status, "S2": status}
    assert [bool(i.evidence and i.evidence.claim) for i in job.scope] == 2 * [status == "completed"]


def test_work_of_a_list_that_was_given_up_counts_once_a_later_list_has_checked_it() -> None:
    job = state(todo(1), items=scope_from_texts(["tea"]))
    job.phase_seen = WORK
    job.note_given_up_list()
    job.complete_worked_items({"S1"})
    assert statuses(job.scope) == {"S1": "open"}
    job.phase_seen = LOOK
    job.complete_list()
    job.complete_worked_items(set())
    assert statuses(job.scope) == {"S1": "completed"}


PLAN = [(1, "boil the water"), (2, "warm the pot"), (2, "measure the tea"), (3, "pour it over")]


@pytest.mark.parametrize(
    "boxes",
    [
        [(1, "boil the water"), (2, "warm the pot"), (2, "measure the tea"), (2, "pour it over")],
        [(1, "boil water"), (1, "warm the pot"), (1, "measure tea"), (1, "pour it over all")],
        [(1, "boil the water"), (2, "warm the pot, measure the tea and pour it over")],
    ],
)
def test_phases_that_are_merged_leave_no_step_behind(boxes: list[tuple[int, str]]) -> None:
    before = sync_plan_steps([], PLAN)
    assert vanished_steps(before, boxes) == []
    after = sync_plan_steps(before, boxes)
    assert [(s.phase, s.text) for s in after if s.status == "open"] == boxes


def test_a_plan_that_does_something_else_leaves_its_steps_owed() -> None:
    before = sync_plan_steps([], PLAN)
    assert len(vanished_steps(before, [(1, "all is done"), (1, "rest")])) == len(PLAN)


def test_steps_of_many_plans_are_folded_into_counts() -> None:
    """None that is open leaves the ledger uncounted, and no id is given twice."""
    ledger: list[ScopeItem] = []
    plans = soak(20, 60)
    for plan in range(plans):
        boxes = [(1, hashlib.sha256(b"%d %d" % (plan, n)).hexdigest()) for n in range(50)]
        ledger = fold_past_steps(sync_plan_steps(ledger, boxes), boxes)
        for step in ledger[-50:-25]:
            step.status = "completed" if plan % 2 else "dropped"
    counts = scope_counts(ledger)
    assert (counts["steps"], counts["steps_completed"]) == (50 * plans, 25 * plans // 2)
    assert len(ledger) <= 3 * (PAST_STEPS + 1) + 50
    assert sum(step.weight for step in ledger if step.status == "open") == 25 * plans
    assert len({step.id for step in ledger}) == len(ledger)


def test_an_item_whose_todo_shows_no_work_is_claimed_with_its_list() -> None:
    job = state(
        todo(1, "S1"), todo(2, "S2"), todo(3, "S3"), items=scope_from_texts(["tea", "milk", "a.md"])
    )
    job.scope[2].statements = [Statement(text="Write a.md.", paths=["a.md"])]
    job.phase_seen = WORK
    complete(job, 1, WORK)
    complete(job, 2, SeenWork())
    complete(job, 3, SeenWork())
    job.complete_list()
    claims = [item.evidence.claim if item.evidence else None for item in job.scope]
    assert statuses(job.scope) == dict.fromkeys(("S1", "S2", "S3"), "completed")
    assert claims == ["", "it is done with the rest of its list", ""]
