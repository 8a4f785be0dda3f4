"""Claims and decisions of validators."""

import json
from datetime import timedelta
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.requirements import requirement_store
from activities.steps.close_job import close_job
from activities.stores.relational_store import RelationalStore
from protocol.endings import CloseRequest
from tests.activities.requirements.drafts import AWAY
from tests.activities.standing import AT, Standing, environment
from tests.activities.stores.filling import (
    fill,
    requirement,
    statuses,
)


def test_a_validator_takes_and_decides(judge: Standing) -> None:
    assert judge.call("take_requirement", count=1) == "No draft requirement is left to take."
    same = requirement(2, "The system shall keep the record number 1.")
    fill(RelationalStore(judge.root), [requirement(1), same, requirement(3)])
    answer = judge.call("take_requirement", count=1)
    assert answer == judge.call("take_requirement", count=1)
    assert answer.startswith("maker/REQ-001 (data, confidence 0.9")
    assert "- CIT-0001: documents/a.md, page 1: " in answer
    decided = judge.call(
        "decide_requirement", id="maker/REQ-001", status="accepted", reasons="Fulfilled."
    )
    assert decided == "maker/REQ-001 is accepted."
    assert "not held by this job" in judge.call(
        "decide_requirement", id="maker/REQ-003", status="rejected", reasons="No."
    )
    assert judge.call("take_requirement", count=1).startswith("maker/REQ-002")
    twin: dict[str, Any] = {"id": "maker/REQ-002", "status": "duplicate", "reasons": "Same."}
    assert "when the status is duplicate" in judge.call("decide_requirement", **twin)
    assert "of itself" in judge.call("decide_requirement", **twin, duplicate_of="maker/REQ-002")
    assert "no requirement maker/REQ-9" in judge.call(
        "decide_requirement", **twin, duplicate_of="maker/REQ-9"
    )
    assert "such as maker/REQ-001." in judge.call(
        "decide_requirement", **twin, duplicate_of="REQ-001"
    )
    judge.call("decide_requirement", **twin, duplicate_of="maker/REQ-001")
    assert statuses(RelationalStore(judge.root)) == {
        "REQ-001": "accepted", "REQ-002": "duplicate", "REQ-003": "draft",
    }  # fmt: skip
    judge.call("take_requirement", count=1)
    assert judge.call("collect_decisions").splitlines() == [
        "Wrote 2 decisions to output/decisions.json.",
        "By verdict: accepted 1, duplicate 1.",
        "Taken and not decided: maker/REQ-003.",
        "Drafts left to take: 0.",
    ]
    decisions = json.loads(judge.text("output/decisions.json"))
    assert [(each["id"], each["decision"], each["reasons"]) for each in decisions] == [
        ("maker/REQ-001", "accepted", "Fulfilled."),
        ("maker/REQ-002", "duplicate", "Same."),
    ]
    assert decisions[1]["duplicate_of"] == "maker/REQ-001"


def test_until_when_one_is_taken_is_by_the_servers_clock(judge: Standing) -> None:
    fill(RelationalStore(judge.root), [requirement(1)])
    judge.call("take_requirement", count=1)
    [row] = RelationalStore(judge.root).run(
        lambda c: [requirement_store.find_requirement_row(c, "maker/REQ-001")]
    )
    assert row is not None
    started = environment().info.started_time
    assert row.taken_until == (started + timedelta(hours=24)).timestamp() * 1000


def test_a_decision_waits_for_its_store(judge: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(RelationalStore(judge.root), [requirement(1), requirement(2)])
    judge.call("take_requirement", count=1)
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    answer = judge.call("decide_requirement", id="maker/REQ-001", status="accepted", reasons="Yes.")
    assert answer.startswith("maker/REQ-001 is accepted.\nDeferred, ")
    assert len(judge.completion().unstored) == 1
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert judge.call("take_requirement", count=1).startswith("maker/REQ-002")
    assert judge.open().state.deferred_writes == []
    assert statuses(RelationalStore(judge.root)) == {"REQ-001": "accepted", "REQ-002": "draft"}


async def test_what_an_ended_validator_held_is_free(judge: Standing) -> None:
    fill(RelationalStore(judge.root), [requirement(1)])
    judge.call("take_requirement", count=1)
    request = CloseRequest(
        root=judge.root.id, commit=judge.commit, at=AT, step=judge.step, status="cancelled"
    )
    await environment(local=False).run(close_job(judge.root), request)
    [row] = RelationalStore(judge.root).run(
        lambda c: [requirement_store.find_requirement_row(c, "maker/REQ-001")]
    )
    assert row is not None
    assert row.taken_by is None


def test_without_its_store_a_validator_waits(
    judge: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    judge.reply(("take_requirement", "{}"))
    with pytest.raises(ApplicationError, match="does not answer") as caught:
        judge.run("take_requirement", judge.request(), local=False)
    assert caught.value.type == "Dependency"


def test_drafts_are_taken_together_with_what_they_are_judged_by(judge: Standing) -> None:
    elsewhere = requirement(3)
    elsewhere.citations = [elsewhere.citations[0].model_copy(update={"document": "documents/b.md"})]
    elsewhere.source = "documents/b.md"
    invented = requirement(2, "The sky over the lake was blue that day.")
    fill(RelationalStore(judge.root), [requirement(1), invented, elsewhere])
    answer = judge.call("take_requirement")
    first, second = answer.split("\n\n")
    assert first.startswith("maker/REQ-001 ")
    assert "Relevance: 0.85, relevant: obliges (shall)" in first
    assert "NOT FOUND" not in first
    assert "- CIT-0002: documents/a.md, page 1 [NOT FOUND there]: The sky" in second
    assert "not relevant by its words" in second
    assert "REQ-003" not in answer.replace("· maker/REQ-003 ·", "")
    for name in ("maker/REQ-001", "maker/REQ-002"):
        judge.call("decide_requirement", id=name, status="rejected", reasons="No.")
    assert judge.call("take_requirement") == (
        "No draft requirement is left to take. Others wait whose document this job does not have: "
        "b.md (1)."
    )


def test_a_requirement_that_says_another_number_is_no_duplicate(judge: Standing) -> None:
    fill(RelationalStore(judge.root), [requirement(1), requirement(2)])
    judge.call("take_requirement")
    twin = {"id": "maker/REQ-002", "status": "duplicate", "reasons": "Same."}
    refused = judge.call("decide_requirement", **twin, duplicate_of="maker/REQ-001")
    assert "is no duplicate of maker/REQ-001: differs in: 2 / 1. Decide on it" in refused
