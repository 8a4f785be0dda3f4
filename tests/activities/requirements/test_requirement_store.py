"""Rows of requirements: each once, whatever is repeated, late or undone."""

import threading
from collections.abc import Callable
from functools import partial

import pytest

from activities.requirements import requirement_store as rows
from activities.requirements import requirement_withdrawal, store_sync, validation_claims
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreRefusedError
from tests.activities.stores.filling import (
    AT,
    AT_HAND,
    call,
    contents,
    decide,
    fill,
    list_job_requirements,
    requirement,
    statuses,
    take,
)


def test_what_is_stored_comes_back_as_it_was(store: RelationalStore) -> None:
    requirements = [requirement(1), requirement(2, "Zero \0 bytes are \U0001f600 kept out.")]
    fill(store, requirements)
    stored = store.run(lambda c: list_job_requirements(c, "maker"))
    assert stored[0] == requirements[0]
    assert stored[1].text == "Zero \ufffd bytes are \U0001f600 kept out."


def test_a_repeated_write_doubles_nothing(store: RelationalStore) -> None:
    for _ in range(3):
        fill(store, [requirement(1), requirement(2)])
    assert statuses(store) == {"REQ-001": "draft", "REQ-002": "draft"}


def test_what_a_rewind_undid_is_withdrawn_and_comes_back_as_it_was(store: RelationalStore) -> None:
    fill(store, [requirement(1), requirement(2)])
    take(store, "judge")
    decide(store, "judge", "maker/REQ-001")
    fill(store, [], at=1)
    assert statuses(store) == {}
    assert store.run(rows.list_live_requirements) == []
    assert take(store, "judge", at=2) is None
    fill(store, [requirement(1)], at=3)
    assert statuses(store) == {"REQ-001": "accepted"}


def test_another_text_under_the_same_id_is_another_requirement(store: RelationalStore) -> None:
    fill(store, [requirement(1)])
    take(store, "judge")
    decide(store, "judge", "maker/REQ-001")
    fill(store, [requirement(1, "Something else is to be kept.")], at=1)
    assert statuses(store) == {"REQ-001": "draft"}
    with pytest.raises(StoreRefusedError, match="not held by this job"):
        decide(store, "judge", "maker/REQ-001", at=2)


def test_a_call_that_comes_late_changes_nothing(store: RelationalStore) -> None:
    fill(store, [requirement(1)], at=5)
    fill(store, [requirement(1, "The frozen worker's older text."), requirement(2)], at=4)
    assert store.run(lambda c: list_job_requirements(c, "maker")) == [requirement(1)]
    with pytest.raises(StoreRefusedError, match="later call"):
        take(store, "maker", at=3)


def test_one_job_holds_one_draft_until_it_decides(store: RelationalStore) -> None:
    fill(store, [requirement(1), requirement(2)])
    assert take(store, "judge", 1) == take(store, "judge", 2) == "maker/REQ-001"
    assert take(store, "other", 1) == "maker/REQ-002"
    decide(store, "judge", "maker/REQ-001", "rejected", at=3)
    assert take(store, "judge", 4) is None
    assert statuses(store) == {"REQ-001": "rejected", "REQ-002": "draft"}


def test_nobody_takes_its_own(store: RelationalStore) -> None:
    fill(store, [requirement(1)])
    assert take(store, "maker", 1) is None


def test_what_its_taker_left_is_free_when_the_time_is_over_or_the_job_ends(
    store: RelationalStore,
) -> None:
    fill(store, [requirement(1)])
    take(store, "frozen", hours=-1)
    assert take(store, "other") == "maker/REQ-001"
    with pytest.raises(StoreRefusedError, match="not held by this job"):
        decide(store, "frozen", "maker/REQ-001", at=1)
    store.run(lambda connection: validation_claims.release_claims(connection, call("other", 2)))
    assert take(store, "third") == "maker/REQ-001"


def test_what_a_job_left_is_with_the_one_that_has_its_task(store: RelationalStore) -> None:
    fill(store, [requirement(1), requirement(2)])
    take(store, "p.check-validator-1")
    again, before = call("p.check-validator-2", 1), ["p.check-validator-1"]
    claim = store.run(
        lambda connection: validation_claims.claim_drafts(
            connection, again, AT, 24, AT_HAND, before=before
        )
    )
    assert [each.ref for each in claim] == ["maker/REQ-001"]
    with pytest.raises(StoreRefusedError, match="not held by this job"):
        decide(store, "p.check-validator-1", "maker/REQ-001", at=2)
    decide(store, again.job, "maker/REQ-001", at=2)
    assert statuses(store)["REQ-001"] == "accepted"


def test_a_decision_counts_once_and_the_newest_wins(store: RelationalStore) -> None:
    fill(store, [requirement(1)])
    take(store, "judge")
    decide(store, "judge", "maker/REQ-001", "rejected", at=1, key="k")
    decide(store, "judge", "maker/REQ-001", "accepted", at=2)
    for _ in range(2):
        decide(store, "judge", "maker/REQ-001", "rejected", at=1, key="k")
    assert statuses(store) == {"REQ-001": "accepted"}


def test_threads_take_each_requirement_once(store: RelationalStore) -> None:
    fill(store, [requirement(number) for number in range(1, 21)])
    refs: list[str | None] = []

    def judge(name: str) -> None:
        moment = 0
        while (ref := take(store, name, moment)) is not None:
            refs.append(ref)
            decide(store, name, ref, at=moment + 1)
            moment += 2

    threads = [threading.Thread(target=judge, args=(f"judge-{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(refs, key=str) == [f"maker/REQ-{n:03d}" for n in range(1, 21)]


def test_of_two_that_call_each_other_duplicates_one_stays(store: RelationalStore) -> None:
    fill(store, [requirement(1), requirement(2)])
    take(store, "one")
    take(store, "two")
    decide(store, "one", "maker/REQ-001", "duplicate", other="maker/REQ-002")
    with pytest.raises(StoreRefusedError, match="is duplicate itself of maker/REQ-002"):
        decide(store, "two", "maker/REQ-002", "duplicate", other="maker/REQ-001")
    decide(store, "two", "maker/REQ-002")
    assert statuses(store) == {"REQ-001": "duplicate", "REQ-002": "accepted"}


@pytest.mark.parametrize(
    "loses",
    [
        lambda store: decide(store, "one", "maker/REQ-001", "rejected", at=1),
        lambda store: fill(store, [], at=1),
        lambda store: fill(store, [requirement(1, "Something else is to be kept.")], at=1),
        lambda store: store.run(
            lambda connection: store_sync.forget_requirements(connection, "maker")
        ),
    ],
    ids=["rejected", "withdrawn", "changed", "forgotten"],
)
def test_a_duplicate_of_what_does_not_stay_is_a_draft_again(
    store: RelationalStore, loses: Callable[[RelationalStore], None]
) -> None:
    fill(store, [requirement(1)])
    fill(store, [requirement(1, "In other words, record 1 is kept.", job="twin")], job="twin")
    assert (take(store, "one"), take(store, "two")) == ("maker/REQ-001", "twin/REQ-001")
    decide(store, "two", "twin/REQ-001", "duplicate", other="maker/REQ-001")
    loses(store)
    assert statuses(store, "twin") == {"REQ-001": "draft"}
    # A late worker that repeats it does not make it a duplicate either.
    with pytest.raises(StoreRefusedError, match="not held by this job"):
        decide(store, "two", "twin/REQ-001", "duplicate", other="maker/REQ-001")
    left = {take(store, "three"), take(store, "four")}
    assert "twin/REQ-001" in left


def test_a_draft_that_says_the_same_word_for_word_is_never_taken(store: RelationalStore) -> None:
    fill(store, [requirement(1), requirement(2)])
    again = [requirement(1, job="twin"), requirement(2, "Another is to be kept.", job="twin")]
    fill(store, again, at=1, job="twin")
    assert take(store, "judge", 1) == "maker/REQ-001"
    _, _, free = store.read(
        lambda c: validation_claims.list_claim_decisions(c, ["judge"], AT, AT_HAND)
    )
    assert free == 2
    decide(store, "judge", "maker/REQ-001", at=2)
    assert take(store, "judge", 3) == "maker/REQ-002"
    decide(store, "judge", "maker/REQ-002", at=4)
    assert take(store, "judge", 5) == "twin/REQ-002"
    decisions, _, free = store.read(
        lambda c: validation_claims.list_claim_decisions(c, ["judge"], AT, AT_HAND)
    )
    assert free == 0
    [double] = [each for each in decisions if each.status == "duplicate"]
    assert (double.ref, double.duplicate_of) == ("twin/REQ-001", "maker/REQ-001")
    # Once the other is gone it is reviewed like any requirement.
    fill(store, [], at=6)
    decide(store, "judge", "twin/REQ-002", at=7)
    assert take(store, "judge", 8) == "twin/REQ-001"


def test_what_a_person_withdraws_stays_withdrawn(store: RelationalStore) -> None:
    requirements = [requirement(1), requirement(2)]
    fill(store, requirements)
    fill(store, [requirement(1, "As maker says.", job="twin")], job="twin")
    take(store, "judge")
    decide(store, "judge", "maker/REQ-001")
    assert take(store, "judge", 1) == "maker/REQ-002"
    decide(store, "judge", "maker/REQ-002", "duplicate", at=2, other="maker/REQ-001")
    was = store.run(
        lambda c: requirement_withdrawal.withdraw_requirement(
            c, "maker/REQ-001", "a person", "It is repealed."
        )
    )
    assert was == "accepted"
    assert statuses(store) == {"REQ-002": "draft"}
    # Its workspace still has the old version, which changes nothing.
    assert "REQ-001" in store.read(lambda c: store_sync.stored_blobs(c, "maker"))
    fill(store, requirements, at=3)
    fill(store, [], at=4)
    fill(store, requirements, at=5)
    assert statuses(store) == {"REQ-002": "draft"}
    refs = [take(store, "other", moment) for moment in range(2)]
    assert "maker/REQ-001" not in refs
    with pytest.raises(StoreRefusedError, match="is withdrawn already"):
        store.run(
            lambda c: requirement_withdrawal.withdraw_requirement(
                c, "maker/REQ-001", "a person", "Again."
            )
        )
    with pytest.raises(StoreRefusedError, match="there is no requirement"):
        store.run(
            lambda c: requirement_withdrawal.withdraw_requirement(
                c, "maker/REQ-009", "a person", "Again."
            )
        )
    [record] = store.read(
        lambda c: rows.search_requirement_store(c, refs=["maker/REQ-001"], withdrawn=True)
    )
    assert (record.withdrawn_by, record.withdrawn_why) == ("a person", "It is repealed.")
    assert store.read(lambda c: rows.search_requirement_store(c, refs=["maker/REQ-001"])) == []


def test_what_is_restored_is_taken_and_judged_like_a_new_draft(store: RelationalStore) -> None:
    requirements = [requirement(number) for number in (1, 2, 3)]
    fill(store, requirements)
    verdicts = {"maker/REQ-001": "accepted", "maker/REQ-002": "rejected"}
    for index, (ref, verdict) in enumerate(verdicts.items()):
        assert take(store, "judge", 2 * index) == ref
        decide(store, "judge", ref, verdict, at=2 * index + 1)
    for each in requirements:
        store.run(
            partial(
                requirement_withdrawal.withdraw_requirement,
                ref=each.ref,
                by="ada",
                why="It is repealed.",
            )
        )
    restored = [
        store.run(
            partial(
                requirement_withdrawal.restore_requirement, ref=each.ref, by="bob", why="It is not."
            )
        )
        for each in requirements
    ]
    # A rejection stays; accepted requirements must enter the graph again.
    assert restored == ["draft", "rejected", "draft"]
    fill(store, requirements, at=10)
    assert statuses(store) == {"REQ-001": "draft", "REQ-002": "rejected", "REQ-003": "draft"}
    [record] = store.read(lambda c: rows.search_requirement_store(c, refs=["maker/REQ-001"]))
    assert (record.restored_by, record.restored_why) == ("bob", "It is not.")
    assert (record.withdrawn_by, record.withdrawn_why) == ("ada", "It is repealed.")
    assert take(store, "judge", 11) == "maker/REQ-001"
    decide(store, "judge", "maker/REQ-001", at=12)
    # From here on its workspace counts again.
    fill(store, requirements[:1], at=13)
    assert statuses(store) == {"REQ-001": "accepted"}
    fill(store, requirements, at=14)
    assert statuses(store)["REQ-003"] == "draft"


def test_only_what_a_person_withdrew_is_restored(store: RelationalStore) -> None:
    requirements = [requirement(number) for number in (1, 2, 3)]
    fill(store, requirements)
    present, _ = contents(requirements[:1])
    store.run(
        partial(
            requirement_withdrawal.take_over_requirements,
            call=call("fork", 1),
            parent="maker",
            present=present,
        )
    )
    fill(store, requirements[:2], at=2)
    for number, why in (
        (1, "taken over by the fork fork, where it is fork/REQ-001"),
        (2, "is not withdrawn"),
        (3, "no longer in the workspace of maker"),
        (4, "there is no requirement"),
    ):
        with pytest.raises(StoreRefusedError, match=why):
            store.run(
                partial(
                    requirement_withdrawal.restore_requirement,
                    ref=f"maker/REQ-00{number}",
                    by="ada",
                    why="Back.",
                )
            )


def test_a_fork_takes_the_drafts_over_that_it_has_as_they_were(store: RelationalStore) -> None:
    requirements = [requirement(number) for number in (1, 2, 3)]
    fill(store, requirements)
    take(store, "judge")
    decide(store, "judge", "maker/REQ-001")
    changed = requirement(3, "It is to be kept for ever.")
    forked = [requirements[0], requirements[1], changed]
    present, _ = contents(forked)
    for first in (call("fork", 1), call("fork", 2)):
        store.run(
            partial(
                requirement_withdrawal.take_over_requirements,
                call=first,
                parent="maker",
                present=present,
            )
        )
    fill(store, [each.model_copy(update={"job": "fork"}) for each in forked], at=3, job="fork")
    # Unchanged drafts go on in the fork alone; decided and changed ones stay the parent's.
    assert statuses(store) == {"REQ-001": "accepted", "REQ-003": "draft"}
    assert len(statuses(store, "fork")) == 3
    fill(store, requirements, at=4)
    assert statuses(store) == {"REQ-001": "accepted", "REQ-003": "draft"}
    refs = []
    for moment in range(10, 30, 2):
        if ref := take(store, "judge", moment):
            refs.append(ref)
            decide(store, "judge", ref, at=moment + 1)
    assert refs == ["maker/REQ-003", "fork/REQ-002", "fork/REQ-003"]
    assert statuses(store, "fork")["REQ-001"] == "duplicate"


def test_a_fork_does_not_bring_back_what_a_person_withdrew(store: RelationalStore) -> None:
    requirements = [requirement(number) for number in (1, 2, 3)]
    fill(store, requirements)
    for number in (1, 2):
        ref = f"maker/REQ-00{number}"
        store.run(
            partial(
                requirement_withdrawal.withdraw_requirement,
                ref=ref,
                by="a person",
                why="It is repealed.",
            )
        )
    # The fork's second requirement has another text, and nobody has withdrawn it.
    forked = [requirements[0], requirement(2, "It is to be kept for ever."), requirements[2]]
    present, _ = contents(forked)
    for job, moment in (("fork", 1), ("other", 2)):
        mine = partial(
            requirement_withdrawal.take_over_requirements,
            call=call(job, moment),
            parent="maker",
            present=present,
        )
        store.run(mine)
        fill(store, [each.model_copy(update={"job": job}) for each in forked], at=moment, job=job)
        store.run(
            partial(
                requirement_withdrawal.withdraw_what_parent_withdrew,
                call=call(job, moment),
                parent="maker",
                present=present,
            )
        )
    # The second fork does not lose what the first one took over either.
    for job in ("fork", "other"):
        assert sorted(statuses(store, job)) == ["REQ-002", "REQ-003"]
    [record] = store.read(
        lambda c: rows.search_requirement_store(c, refs=["fork/REQ-001"], withdrawn=True)
    )
    assert (record.withdrawn_by, record.withdrawn_why) == ("a person", "It is repealed.")


def test_the_store_is_searched_by_what_is_given(store: RelationalStore) -> None:
    place = {"label": "iv", "section": "2.1"}
    cited = [each.model_copy(update=place) for each in requirement(1).citations]
    first = requirement(1).model_copy(update={"citations": cited, "force": "should"})
    fill(store, [first, requirement(2)])
    fill(store, [requirement(1, "Of another.", job="zoo")], job="zoo")

    def search(**only: object) -> list[str]:
        hits = store.read(lambda c: rows.search_requirement_store(c, **only))  # type: ignore[arg-type]
        return [each.requirement.ref for each in hits]

    assert search() == ["maker/REQ-001", "maker/REQ-002", "zoo/REQ-001"]
    assert search(job="zoo") == ["zoo/REQ-001"]
    assert search(status="accepted") == []
    assert search(document="a.md", job="maker") == ["maker/REQ-001", "maker/REQ-002"]
    assert search(document="%") == []
    [record] = store.read(lambda c: rows.search_requirement_store(c, refs=["maker/REQ-001"]))
    assert record.requirement == first


def test_forgetting_a_job_leaves_the_duplicates_of_those_with_names_like_its_own(
    store: RelationalStore,
) -> None:
    for job in ("Maker", "maker/two"):
        fill(store, [requirement(1, f"{job} keeps it for years.", job=job)], job=job)
        alike = requirement(1, f"In other words, {job} has it.", job=f"like {job}")
        fill(store, [alike], job=f"like {job}")
    while ref := take(store, "judge"):
        like = ref.removeprefix("like ")
        if like == ref:
            decide(store, "judge", ref)
        else:
            decide(store, "judge", ref, "duplicate", other=like)
    store.run(lambda connection: store_sync.forget_requirements(connection, "maker"))
    assert statuses(store, "like Maker") == {"REQ-001": "duplicate"}
    assert statuses(store, "like maker/two") == {"REQ-001": "duplicate"}
