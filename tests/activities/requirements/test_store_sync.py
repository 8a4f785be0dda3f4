"""What a workspace and the store have of the same requirements."""

import hashlib
import json

import pytest

from activities.requirements import store_sync
from activities.steps.close_job import close_job
from activities.stores.relational_store import RelationalStore
from protocol.endings import CloseRequest
from tests.activities.requirements.drafts import (
    AWAY,
    OTHER,
    QUOTE,
    requirement_arguments,
    stored_texts,
)
from tests.activities.standing import AT, JOB, Standing, environment
from tests.activities.stores.filling import (
    call,
    decide,
    fill,
    list_job_requirements,
    requirement,
    statuses,
    take,
)


def test_a_retry_doubles_nothing_and_gives_the_same_commit(job: Standing) -> None:
    job.reply(("add_requirement", json.dumps(requirement_arguments())))
    request = job.request()
    replies = [job.run("add_requirement", request, local=False) for _ in range(3)]
    assert len({reply.model_dump_json() for reply in replies}) == 1
    assert stored_texts(job) == {"REQ-001": QUOTE}


def test_a_retry_knows_what_the_first_attempt_deferred(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    job.reply(("add_requirement", json.dumps(requirement_arguments())))
    request = job.request()
    replies = [job.run("add_requirement", request, local=False) for _ in range(2)]
    assert replies[0].commit == replies[1].commit
    assert len(job.open(replies[1].commit).state.deferred_writes) == 1


def test_an_attempt_without_a_result_leaves_nothing_deferred(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.call("add_requirement", **requirement_arguments())
    replies = job.root.repository(JOB) / "replies"
    before = set(replies.iterdir())
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    quotes = [{"path": "documents/a.md", "page": 1, "quote": OTHER}]
    job.reply(("add_citation", json.dumps({"requirement": "REQ-001", "quotes": quotes})))
    job.run("add_citation", job.request(), local=False)
    # As if it had been killed while it recorded what it did.
    for path in {path for path in replies.iterdir() if path.suffix == ".done"} - before:
        path.unlink()
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    reply = job.run("add_citation", job.request(), local=False)
    assert reply.ok
    assert job.open(reply.commit).state.deferred_writes == []


def test_what_was_undone_leaves_the_store_with_the_next_call(job: Standing) -> None:
    before = job.commit
    job.call("add_requirement", **requirement_arguments())
    job.call("add_requirement", **requirement_arguments(OTHER))
    assert len(stored_texts(job)) == 2
    job.commit = before
    job.call("add_requirement", **requirement_arguments("Invoices must be kept."))
    assert stored_texts(job) == {"REQ-001": "Invoices must be kept."}


def test_a_rewind_withdraws_what_it_undid(job: Standing) -> None:
    before = job.commit
    job.call("add_requirement", **requirement_arguments())
    snapshot = job.open(before)
    environment(local=False).run(store_sync.update_store_after_rewind, job.root, snapshot)
    assert stored_texts(job) == {}
    assert snapshot.state.deferred_writes == []


def test_a_rewind_while_the_store_is_away_is_made_up_for(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = job.commit
    job.call("add_requirement", **requirement_arguments())
    snapshot = job.open(before)
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    environment(local=False).run(store_sync.update_store_after_rewind, job.root, snapshot)
    job.commit = snapshot.save("rewound", AT)
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert job.completion().unstored == []
    assert stored_texts(job) == {}


def test_an_edited_requirement_is_checked_before_it_is_stored(job: Standing) -> None:
    job.call("add_requirement", **requirement_arguments())
    final = json.loads(job.text("requirements/req_001/final.json"))
    for field, value, complaint in (
        ("confidence", 7, "confidence"),
        ("id", "REQ-009", "must be REQ-001"),
        ("citations", [final["citations"][0] | {"quote": "made up words"}], "differs from"),
        ("citations", [final["citations"][0] | {"id": "../a"}], "there is no citation"),
    ):
        job.write("requirements/req_001/final.json", json.dumps(final | {field: value}))
        [why] = job.completion().unstored
        assert "requirements/req_001/final.json" in why
        assert complaint in why
        assert stored_texts(job) == {"REQ-001": QUOTE}
    job.write("requirements/req_001/final.json", json.dumps(final | {"text": "Kept, invoices."}))
    assert job.completion().unstored == []
    assert stored_texts(job) == {"REQ-001": "Kept, invoices."}


def test_a_store_that_is_away_stops_no_job_until_its_end(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    for text in (QUOTE, OTHER):
        answer = job.call("add_requirement", **requirement_arguments(text))
        assert "REQ-00" in answer
        assert "Deferred" in answer
    assert [entry.kind for entry in job.open().state.deferred_writes] == ["requirements"]
    assert job.open().state.without_notes().deferred_writes == []
    [why] = job.completion().unstored
    assert "does not answer" in why
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert job.completion().unstored == []
    assert stored_texts(job) == {"REQ-001": QUOTE, "REQ-002": OTHER}
    job.call("add_requirement", **requirement_arguments("Invoices must be kept."))
    assert job.open().state.deferred_writes == []
    assert len(stored_texts(job)) == 3


async def test_the_end_of_a_job_clears_what_was_made_up_for(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    job.call("add_requirement", **requirement_arguments())
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert job.completion().unstored == []
    request = CloseRequest(
        root=job.root.id, commit=job.commit, at=AT, step=job.step, status="completed", call=0
    )
    closed = await environment(local=False).run(close_job(job.root), request)
    assert job.open(closed.commit).state.deferred_writes == []


def test_what_a_job_left_undecided_is_withdrawn_when_another_begins_in_its_place(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, first = RelationalStore(job.root), "tea.draft-creator-1"
    fill(store, [requirement(1), requirement(2)], job=first)
    assert take(store, "judge") == f"{first}/REQ-001"
    decide(store, "judge", f"{first}/REQ-001")
    fill(store, [requirement(1, "In other words, record 1 is kept.")], job="zoo")
    assert take(store, "other") == f"{first}/REQ-002"
    assert take(store, "judge") == "zoo/REQ-001"
    decide(store, "judge", "zoo/REQ-001", "duplicate", other=f"{first}/REQ-002")

    def begin(*before: str) -> list[str]:
        notices: list[str] = environment().run(
            store_sync.update_store_after_replacement, job.root, job.open(), before
        )
        return notices

    assert begin() == []
    assert len(statuses(store, first)) == 2
    with monkeypatch.context() as away:
        away.setenv("LONGHAUL_STORE_URL", AWAY)
        [lost] = begin(first)
        assert first in lost
    assert begin(first) == begin(first) == []
    assert statuses(store, first) == {"REQ-001": "accepted"}
    # A duplicate of a requirement that is gone is reviewed again.
    assert take(store, "judge", at=1) == "zoo/REQ-001"


def test_a_fork_has_its_parents_drafts_instead_of_doubling_them(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.call("add_requirement", **requirement_arguments())
    job.call("add_requirement", **requirement_arguments(OTHER))
    [first, second] = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    fill(RelationalStore(job.root), [first, second], at=-3, job="parent")
    # The first was decided on; the parent's second has the same content.
    blobs = RelationalStore(job.root).read(lambda c: store_sync.stored_blobs(c, JOB))
    parents = [(first, blobs["REQ-001"]), (second, blobs["REQ-002"])]
    RelationalStore(job.root).run(lambda c: store_sync.forget_requirements(c, "parent"))
    RelationalStore(job.root).run(
        lambda c: store_sync.match_rows_to_workspace(c, call("parent", -2), blobs, parents)
    )
    RelationalStore(job.root).run(lambda c: store_sync.forget_requirements(c, JOB))
    assert (
        take(
            RelationalStore(job.root),
            "judge",
            at=-1,
            digest=hashlib.sha256(QUOTE.encode()).hexdigest(),
        )
        == "parent/REQ-001"
    )
    decide(RelationalStore(job.root), "judge", "parent/REQ-001")

    def begin() -> list[str]:
        notices: list[str] = environment().run(
            store_sync.update_store_after_fork, job.root, job.open(), "parent"
        )
        return notices

    with monkeypatch.context() as away:
        away.setenv("LONGHAUL_STORE_URL", AWAY)
        [notice] = begin()
        assert notice.startswith("Deferred, and made later by itself")
    assert begin() == begin() == []
    assert statuses(RelationalStore(job.root), "parent") == {"REQ-001": "accepted"}
    assert statuses(RelationalStore(job.root), JOB) == {"REQ-001": "draft", "REQ-002": "draft"}
