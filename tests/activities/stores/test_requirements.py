"""Rows of requirements: each once, whatever is repeated, late or undone."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from activities.stores import deciding
from activities.stores import requirements as rows
from activities.stores.away import StoreRefuses
from activities.stores.engine import Store
from tests.activities.stores.filling import AT, call, decide, fill, requirement, statuses, take


def test_what_is_stored_comes_back_as_it_was(store: Store) -> None:
    made = [requirement(1), requirement(2, "Zero \0 bytes are \U0001f600 kept out.")]
    fill(store, made)
    found = store.run(lambda c: rows.of_job(c, "maker"))
    assert found[0] == made[0]
    assert found[1].text == "Zero \ufffd bytes are \U0001f600 kept out."


def test_a_repeated_write_doubles_nothing(store: Store) -> None:
    for _ in range(3):
        fill(store, [requirement(1), requirement(2)])
    assert statuses(store) == {"REQ-001": "draft", "REQ-002": "draft"}


def test_what_a_rewind_undid_is_withdrawn_and_comes_back_as_it_was(store: Store) -> None:
    fill(store, [requirement(1), requirement(2)])
    take(store, "judge")
    decide(store, "judge", "maker/REQ-001")
    fill(store, [], at=1)
    assert statuses(store) == {}
    assert store.run(rows.known) == []
    assert take(store, "judge", at=2) is None
    fill(store, [requirement(1)], at=3)
    assert statuses(store) == {"REQ-001": "accepted"}


def test_another_text_under_the_same_id_is_another_requirement(store: Store) -> None:
    fill(store, [requirement(1)])
    take(store, "judge")
    decide(store, "judge", "maker/REQ-001")
    fill(store, [requirement(1, "Something else is to be kept.")], at=1)
    assert statuses(store) == {"REQ-001": "draft"}
    with pytest.raises(StoreRefuses, match="not held by this job"):
        decide(store, "judge", "maker/REQ-001", at=2)


def test_a_call_that_comes_late_changes_nothing(store: Store) -> None:
    fill(store, [requirement(1)], at=5)
    fill(store, [requirement(1, "The frozen worker's older text."), requirement(2)], at=4)
    assert store.run(lambda c: rows.of_job(c, "maker")) == [requirement(1)]
    with pytest.raises(StoreRefuses, match="later call"):
        take(store, "maker", at=3)


def test_one_job_holds_one_draft_until_it_decides(store: Store) -> None:
    fill(store, [requirement(1), requirement(2)])
    assert take(store, "judge", 1) == take(store, "judge", 2) == "maker/REQ-001"
    assert take(store, "other", 1) == "maker/REQ-002"
    decide(store, "judge", "maker/REQ-001", "rejected", at=3)
    assert take(store, "judge", 4) is None
    assert statuses(store) == {"REQ-001": "rejected", "REQ-002": "draft"}


def test_nobody_takes_its_own(store: Store) -> None:
    fill(store, [requirement(1)])
    assert take(store, "maker", 1) is None


def test_what_its_taker_left_is_free_when_the_time_is_over_or_the_job_ends(store: Store) -> None:
    fill(store, [requirement(1)])
    take(store, "frozen", hours=-1)
    assert take(store, "other") == "maker/REQ-001"
    with pytest.raises(StoreRefuses, match="not held by this job"):
        decide(store, "frozen", "maker/REQ-001", at=1)
    store.run(lambda connection: deciding.release(connection, call("other", 2)))
    assert take(store, "third") == "maker/REQ-001"


def test_what_a_job_left_is_with_the_one_that_has_its_task(store: Store) -> None:
    fill(store, [requirement(1), requirement(2)])
    take(store, "p.check-validator-1")
    again, before = call("p.check-validator-2", 1), ["p.check-validator-1"]
    taken = store.run(lambda connection: deciding.take(connection, again, AT, 24, before))
    assert taken
    assert taken.ref == "maker/REQ-001"
    with pytest.raises(StoreRefuses, match="not held by this job"):
        decide(store, "p.check-validator-1", "maker/REQ-001", at=2)
    decide(store, again.job, "maker/REQ-001", at=2)
    assert statuses(store)["REQ-001"] == "accepted"


def test_a_decision_counts_once_and_the_newest_wins(store: Store) -> None:
    fill(store, [requirement(1)])
    take(store, "judge")
    decide(store, "judge", "maker/REQ-001", "rejected", at=1, key="k")
    decide(store, "judge", "maker/REQ-001", "accepted", at=2)
    for _ in range(2):
        decide(store, "judge", "maker/REQ-001", "rejected", at=1, key="k")
    assert statuses(store) == {"REQ-001": "accepted"}


def test_threads_take_each_requirement_once(store: Store) -> None:
    fill(store, [requirement(number) for number in range(1, 21)])
    taken: list[str | None] = []

    def judge(name: str) -> None:
        at = 0
        while (ref := take(store, name, at)) is not None:
            taken.append(ref)
            decide(store, name, ref, at=at + 1)
            at += 2

    threads = [threading.Thread(target=judge, args=(f"judge-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken, key=str) == [f"maker/REQ-{n:03d}" for n in range(1, 21)]


def test_of_two_that_call_each_other_duplicates_one_stays(store: Store) -> None:
    fill(store, [requirement(1), requirement(2)])
    take(store, "one")
    take(store, "two")
    decide(store, "one", "maker/REQ-001", "duplicate", other="maker/REQ-002")
    with pytest.raises(StoreRefuses, match="is duplicate itself of maker/REQ-002"):
        decide(store, "two", "maker/REQ-002", "duplicate", other="maker/REQ-001")
    decide(store, "two", "maker/REQ-002")
    assert statuses(store) == {"REQ-001": "duplicate", "REQ-002": "accepted"}


@pytest.mark.parametrize(
    "loses",
    [
        lambda store: decide(store, "one", "maker/REQ-001", "rejected", at=1),
        lambda store: fill(store, [], at=1),
        lambda store: fill(store, [requirement(1, "Something else is to be kept.")], at=1),
        lambda store: store.run(lambda connection: rows.forget(connection, "maker")),
    ],
    ids=["rejected", "withdrawn", "changed", "forgotten"],
)
def test_a_duplicate_of_what_does_not_stay_is_a_draft_again(
    store: Store, loses: Callable[[Store], None]
) -> None:
    fill(store, [requirement(1)])
    fill(store, [requirement(1, job="twin")], job="twin")
    assert (take(store, "one"), take(store, "two")) == ("maker/REQ-001", "twin/REQ-001")
    decide(store, "two", "twin/REQ-001", "duplicate", other="maker/REQ-001")
    loses(store)
    assert statuses(store, "twin") == {"REQ-001": "draft"}
    # Said twice, by a worker that was late, it is no duplicate either.
    with pytest.raises(StoreRefuses, match="not held by this job"):
        decide(store, "two", "twin/REQ-001", "duplicate", other="maker/REQ-001")
    left = {take(store, "three"), take(store, "four")}
    assert "twin/REQ-001" in left


def test_forgetting_a_job_leaves_the_duplicates_of_those_with_names_like_its_own(
    store: Store,
) -> None:
    for job in ("Maker", "maker/two"):
        fill(store, [requirement(1, job=job)], job=job)
        fill(store, [requirement(1, job=f"like {job}")], job=f"like {job}")
    while ref := take(store, "judge"):
        like = ref.removeprefix("like ")
        if like == ref:
            decide(store, "judge", ref)
        else:
            decide(store, "judge", ref, "duplicate", other=like)
    store.run(lambda connection: rows.forget(connection, "maker"))
    assert statuses(store, "like Maker") == {"REQ-001": "duplicate"}
    assert statuses(store, "like maker/two") == {"REQ-001": "duplicate"}
