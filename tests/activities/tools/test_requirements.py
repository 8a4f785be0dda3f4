"""Requirement tools on a workspace and its store."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.ending.closing import Closing
from activities.stores import requirements as rows
from activities.stores import turning
from activities.stores.engine import Store
from activities.web import Fetched, as_source
from protocol.endings import CloseRequest
from tests.activities.search.endpoint import serving
from tests.activities.standing import AT, JOB, Standing, environment
from tests.activities.stores.filling import decide, fill, requirement, statuses, take

AWAY = "postgresql://127.0.0.1:1/db"
QUOTE = "Every invoice must be kept for ten years."
OTHER = "The user shall log in with a password of twelve signs."


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    made = Standing.begin(tmp_path, kind="tactical", agent="creator")
    made.write("documents/a.md", QUOTE)
    made.write("documents/a.md.txt", f"[page 1]\n{QUOTE}\n{OTHER}\n")
    made.call("cite_document", path="documents/a.md", page=1, quote=QUOTE)
    return made


@pytest.fixture
def judge(tmp_path: Path) -> Standing:
    tools = ["files", "todos", "job", "validation"]
    return Standing.begin(tmp_path, kind="tactical", set={"tools": tools})


def given(text: str = QUOTE) -> dict[str, Any]:
    return {
        "text": text,
        "type": "legal",
        "citations": ["CIT-0001"],
        "reasoning": "It says so.",
        "confidence": 0.9,
    }


LISTED = "candidates/candidates.json"


def test_candidates_of_all_documents_are_in_one_list(job: Standing) -> None:
    # Text beside an input is what the system made of it.
    for folder in ("documents/laws", "output"):
        job.write(f"{folder}/a.md", OTHER)
        job.write(f"{folder}/a.md.txt", f"[page 1]\n{OTHER}\n")
    paths = ["documents/a.md", "documents/laws/a.md", "output/a.md"]
    # What is identified again takes the place of what was there.
    for path in (*paths, "documents/laws/a.md"):
        assert "candidates/candidates.md" in job.call("identify_requirement_candidates", path=path)
    held = json.loads(job.text(LISTED))
    assert [each["document"] for each in held] == paths
    assert [len(each["candidates"]) for each in held] == [2, 1, 1]
    page = job.text("candidates/candidates.md")
    assert page.startswith(
        f"# Candidates\n\n## documents/a.md\n\n- C-001 · p.1 · obligation · 0.94 · {QUOTE}\n"
    )
    # What an agent added to those of another document stays.
    held[2]["candidates"][0]["remark"] = "See annex."
    job.write(LISTED, json.dumps(held))
    job.call("identify_requirement_candidates", path="documents/a.md")
    assert json.loads(job.text(LISTED)) == held
    job.write(LISTED, json.dumps(held).replace('"page": 1', '"page": "one"', 1))
    told = job.call("identify_requirement_candidates", path="documents/a.md")
    assert told.startswith(f"Error: {LISTED}: 0.candidates.0.page: ")
    assert "Candidates were not compared" in job.call("collect_requirements")


def test_requirements_are_collected_and_what_is_missing_is_told(job: Standing) -> None:
    result = "output/requirements.json"
    assert job.call("collect_requirements").startswith(f"Wrote 0 requirements to {result}.")
    assert json.loads(job.text(result)) == []
    job.write("documents/b.md", OTHER)
    job.write("documents/b.md.txt", f"[page 1]\nPage one.\n[page 2]\n{OTHER}\n")
    for path in ("documents/a.md", "documents/b.md"):
        job.call("identify_requirement_candidates", path=path)
    job.call("cite_document", path="documents/b.md", page=2, quote=OTHER)
    # Each document has a candidate C-001.
    job.call("add_requirement", **given(), candidate="C-001")
    second = given(OTHER) | {"type": "functional", "citations": ["CIT-0002", "CIT-0001"]}
    job.call("add_requirement", **second)
    finals = [json.loads(job.text(f"requirements/req_00{n}/final.json")) for n in (1, 2)]
    assert job.call("collect_requirements").splitlines() == [
        f"Wrote 2 requirements to {result}.",
        "By type: functional 1, legal 1.",
        "Pages cited:",
        "- documents/a.md: 1",
        "- documents/b.md: 2",
        "No requirement refers to 2 of 3 candidates:",
        f"- documents/a.md: C-002 · p.1 · obligation · 0.90 · {OTHER}",
        f"- documents/b.md: C-001 · p.2 · obligation · 0.90 · {OTHER}",
    ]
    assert json.loads(job.text(result)) == finals
    job.write("requirements/req_001/final.json", json.dumps(finals[0] | {"confidence": 7}))
    job.write("requirements/req_002/final.json", json.dumps(finals[1] | {"candidate": "C-001"}))
    told = job.call("collect_requirements").splitlines()
    assert told[1] == "Left out, to be mended:"
    assert told[2].startswith("requirements/req_001/final.json: confidence: ")
    # It cites both.
    assert "No requirement refers to 1 of 3 candidates:" in told
    assert [each["id"] for each in json.loads(job.text(result))] == ["REQ-002"]


def test_candidates_that_are_left_out_are_counted(job: Standing) -> None:
    weak = "Readers may photograph items without flash.\n"
    job.write("documents/b.md", f"{QUOTE}\n\n{weak}")
    job.write("documents/b.md.txt", f"[page 1]\n{QUOTE}\n\n{weak}")
    told = job.call("identify_requirement_candidates", path="documents/b.md")
    assert told.startswith("1 candidates in documents/b.md")
    assert "1 below confidence 0.5 left out" in told.splitlines()[0]


def stored(job: Standing) -> dict[str, str]:
    found = Store(job.root).run(lambda c: rows.of_job(c, JOB))
    return {each.id: each.text for each in found}


def test_a_requirement_is_written_down_and_stored_through_one_model(job: Standing) -> None:
    assert job.call("add_requirement", **given()) == "REQ-001 written to requirements/req_001/"
    final = json.loads(job.text("requirements/req_001/final.json"))
    [row] = Store(job.root).run(lambda c: rows.of_job(c, JOB))
    assert json.loads(row.final_json)["citations"] == final["citations"]
    assert json.loads(row.final_json) == final
    assert (row.job, "job" in final) == (JOB, False)


def test_a_retry_doubles_nothing_and_gives_the_same_commit(job: Standing) -> None:
    job.reply(("add_requirement", json.dumps(given())))
    request = job.request()
    replies = [job.run("add_requirement", request, local=False) for _ in range(3)]
    assert len({reply.model_dump_json() for reply in replies}) == 1
    assert stored(job) == {"REQ-001": QUOTE}


def test_what_was_undone_leaves_the_store_with_the_next_call(job: Standing) -> None:
    before = job.commit
    job.call("add_requirement", **given())
    job.call("add_requirement", **given(OTHER))
    assert len(stored(job)) == 2
    job.commit = before
    job.call("add_requirement", **given("Invoices are kept."))
    assert stored(job) == {"REQ-001": "Invoices are kept."}


def test_a_rewind_withdraws_what_it_undid(job: Standing) -> None:
    before = job.commit
    job.call("add_requirement", **given())
    snapshot = job.open(before)
    environment(local=False).run(turning.after_rewind, job.root, snapshot)
    assert stored(job) == {}
    assert snapshot.state.deferred == []


def test_a_rewind_while_the_store_is_away_is_made_up_for(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = job.commit
    job.call("add_requirement", **given())
    snapshot = job.open(before)
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    environment(local=False).run(turning.after_rewind, job.root, snapshot)
    job.commit = snapshot.save("rewound", AT)
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert job.completion().unstored == []
    assert stored(job) == {}


def test_an_edited_requirement_is_checked_before_it_is_stored(job: Standing) -> None:
    job.call("add_requirement", **given())
    final = json.loads(job.text("requirements/req_001/final.json"))
    for field, value, told in (
        ("confidence", 7, "confidence"),
        ("id", "REQ-009", "must be REQ-001"),
        ("citations", [final["citations"][0] | {"quote": "made up words"}], "differs from"),
        ("citations", [final["citations"][0] | {"id": "../a"}], "there is no citation"),
    ):
        job.write("requirements/req_001/final.json", json.dumps(final | {field: value}))
        [why] = job.completion().unstored
        assert "requirements/req_001/final.json" in why
        assert told in why
        assert stored(job) == {"REQ-001": QUOTE}
    job.write("requirements/req_001/final.json", json.dumps(final | {"text": "Kept, invoices."}))
    assert job.completion().unstored == []
    assert stored(job) == {"REQ-001": "Kept, invoices."}


def test_a_store_that_is_away_stops_no_job_until_its_end(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    for text in (QUOTE, OTHER):
        told = job.call("add_requirement", **given(text))
        assert "REQ-00" in told
        assert "Deferred" in told
    assert [entry.kind for entry in job.open().state.deferred] == ["requirements"]
    assert job.open().state.without_notes().deferred == []
    [why] = job.completion().unstored
    assert "does not answer" in why
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert job.completion().unstored == []
    assert stored(job) == {"REQ-001": QUOTE, "REQ-002": OTHER}
    job.call("add_requirement", **given("Invoices are kept."))
    assert job.open().state.deferred == []
    assert len(stored(job)) == 3


async def test_the_end_of_a_job_clears_what_was_made_up_for(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    job.call("add_requirement", **given())
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert job.completion().unstored == []
    request = CloseRequest(
        root=job.root.id, commit=job.commit, at=AT, step=job.step, status="completed", call=0
    )
    closed = await environment(local=False).run(Closing(job.root).close_job, request)
    assert job.open(closed.commit).state.deferred == []


def test_similar_ones_are_found_here_and_in_the_store(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.call("add_requirement", **given())
    fill(Store(job.root), [requirement(7, "Every invoice must be kept for at least ten years.")])
    fill(Store(job.root), [requirement(8, OTHER, job="b")], job="b")
    lines = job.call("find_similar_requirements", text=QUOTE).splitlines()
    assert lines[0] == "2 of 3 requirements are alike by their words (threshold 0.30):"
    assert lines[1].startswith("1.00 · duplicate · REQ-001 · draft · Every invoice")
    assert "· similar · maker/REQ-007 · draft ·" in lines[2]
    assert "3 of 3" in job.call("find_similar_requirements", text=QUOTE, threshold=0)
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    told = job.call("find_similar_requirements", text=QUOTE)
    assert told.startswith("1 of 1")
    assert "Only this workspace was searched: the store" in told


def test_a_validator_takes_and_decides(judge: Standing) -> None:
    assert judge.call("take_requirement") == "No draft requirement is left to take."
    fill(Store(judge.root), [requirement(1), requirement(2), requirement(3)])
    told = judge.call("take_requirement")
    assert told == judge.call("take_requirement")
    assert told.startswith("maker/REQ-001 (data, confidence 0.9")
    assert "- CIT-0001: documents/a.md, page 1: " in told
    decided = judge.call(
        "decide_requirement", id="maker/REQ-001", status="accepted", reasons="Fulfilled."
    )
    assert decided == "maker/REQ-001 is accepted."
    assert "not held by this job" in judge.call(
        "decide_requirement", id="maker/REQ-003", status="rejected", reasons="No."
    )
    assert judge.call("take_requirement").startswith("maker/REQ-002")
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
    assert statuses(Store(judge.root)) == {
        "REQ-001": "accepted", "REQ-002": "duplicate", "REQ-003": "draft",
    }  # fmt: skip
    judge.call("take_requirement")
    assert judge.call("collect_decisions").splitlines() == [
        "Wrote 2 decisions to output/decisions.json.",
        "By verdict: accepted 1, duplicate 1.",
        "Taken and not decided: maker/REQ-003.",
        "Drafts left to take: 0.",
    ]
    said = json.loads(judge.text("output/decisions.json"))
    assert [(each["id"], each["decision"], each["reasons"]) for each in said] == [
        ("maker/REQ-001", "accepted", "Fulfilled."),
        ("maker/REQ-002", "duplicate", "Same."),
    ]
    assert said[1]["duplicate_of"] == "maker/REQ-001"


def test_until_when_one_is_taken_is_by_the_servers_clock(judge: Standing) -> None:
    fill(Store(judge.root), [requirement(1)])
    judge.call("take_requirement")
    [row] = Store(judge.root).run(lambda c: [rows.find(c, "maker/REQ-001")])
    assert row is not None
    started = environment().info.started_time
    assert row.taken_until == (started + timedelta(hours=24)).timestamp() * 1000


def test_a_decision_waits_for_its_store(judge: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(Store(judge.root), [requirement(1), requirement(2)])
    judge.call("take_requirement")
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    told = judge.call("decide_requirement", id="maker/REQ-001", status="accepted", reasons="Yes.")
    assert told.startswith("maker/REQ-001 is accepted.\nDeferred, ")
    assert len(judge.completion().unstored) == 1
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert judge.call("take_requirement").startswith("maker/REQ-002")
    assert judge.open().state.deferred == []
    assert statuses(Store(judge.root)) == {"REQ-001": "accepted", "REQ-002": "draft"}


async def test_what_an_ended_validator_held_is_free(judge: Standing) -> None:
    fill(Store(judge.root), [requirement(1)])
    judge.call("take_requirement")
    request = CloseRequest(
        root=judge.root.id, commit=judge.commit, at=AT, step=judge.step, status="cancelled"
    )
    await environment(local=False).run(Closing(judge.root).close_job, request)
    [row] = Store(judge.root).run(lambda c: [rows.find(c, "maker/REQ-001")])
    assert row is not None
    assert row.taken_by is None


def test_relevance_and_mentions(job: Standing) -> None:
    assert job.call("assess_relevance", text=QUOTE).startswith(
        "Relevance 0.90 by its wording, relevant ("
    )
    assert ", not relevant (" in job.call("assess_relevance", text="The sky was blue that day.")
    job.write("documents/b.md", "x")
    job.write("documents/b.md.txt", "[page 1]\nIt is sent by the ERP system.\n")
    assert "ERP · abbreviation · 1 · p.1" in job.call(
        "extract_entity_mentions", path="documents/b.md"
    )


def test_a_web_page_is_cited_as_it_was_fetched(job: Standing) -> None:
    url, data = "https://law.example/act/1", f"<html><body><p>{QUOTE}</p></body></html>".encode()
    source = as_source(Fetched("https://law.example/a", url, "text/html", None, data))
    job.put(source.put_into)
    good = {"url": url, "quote": QUOTE, "accessed": "2023-11-14"}
    assert job.call("cite_web", **good) == f"citation CIT-0002: {source.path}, page 1 ({url})"
    kept = json.loads(job.text("citations/CIT-0002.json"))
    assert (kept["url"], kept["accessed"]) == ("https://law.example/act/1", "2023-11-14")
    assert f"is not in {source.path}" in job.call(
        "cite_web", **(good | {"quote": "Nobody has ever said such a thing."})
    )
    for url in ("https://law.example/act", "https://law.example/act/12", "https://other.example"):
        assert "Fetch it first" in job.call("cite_web", **(good | {"url": url}))
    assert "accessed" in job.call("cite_web", **(good | {"accessed": "yesterday"}))
    for day in ("1994-12-31", "2023-11-16"):
        told = job.call("cite_web", **(good | {"accessed": day}))
        assert told.startswith(f"Error: accessed: {day} cannot be")
    told = job.call("add_requirement", **(given() | {"citations": ["CIT-0002"]}))
    assert told.startswith("REQ-001")
    [row] = Store(job.root).run(lambda c: rows.of_job(c, JOB))
    assert row.citations[0].url == "https://law.example/act/1"


def test_without_its_store_a_validator_waits(
    judge: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    judge.reply(("take_requirement", "{}"))
    with pytest.raises(ApplicationError, match="does not answer") as told:
        judge.run("take_requirement", judge.request(), local=False)
    assert told.value.type == "Dependency"


def test_what_is_compared_leaves_out_what_this_job_judges(tmp_path: Path) -> None:
    with serving() as endpoint:
        embeddings = {"model": "m", "base_url": endpoint.url}
        judge = Standing.begin(
            tmp_path, kind="tactical", agent="validator", set={"embeddings": embeddings}
        )
        first, second = requirement(1, "Invoices kept."), requirement(2, "Storing bills.")
        fill(Store(judge.root), [first, second])
        assert judge.call("take_requirement").startswith("maker/REQ-001")
        told = judge.call("find_similar_requirements", text=first.text).splitlines()
        assert told[0].startswith("1 of 1 ")
        assert "· duplicate · maker/REQ-002 · draft ·" in told[1]
        endpoint.fails_after = 0
        told = judge.call("find_similar_requirements", text=first.text).splitlines()
        assert told[0].startswith("0 of 1 ")
        assert told[1].startswith("Compared by words alone: the embeddings endpoint failed")
        # One that says the same is there: 0 is no verdict.
        assert told[2].startswith("One that says it in other words may not be among them")


def test_what_a_job_left_undecided_is_withdrawn_when_another_begins_in_its_place(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, first = Store(job.root), "tea.draft-creator-1"
    fill(store, [requirement(1), requirement(2)], job=first)
    assert take(store, "judge") == f"{first}/REQ-001"
    decide(store, "judge", f"{first}/REQ-001")
    fill(store, [requirement(1)], job="zoo")
    assert take(store, "other") == f"{first}/REQ-002"
    assert take(store, "judge") == "zoo/REQ-001"
    decide(store, "judge", "zoo/REQ-001", "duplicate", other=f"{first}/REQ-002")

    def begin(*before: str) -> list[str]:
        told: list[str] = environment().run(turning.instead_of, job.root, job.open(), before)
        return told

    assert begin() == []
    assert len(statuses(store, first)) == 2
    with monkeypatch.context() as away:
        away.setenv("LONGHAUL_STORE_URL", AWAY)
        [lost] = begin(first)
        assert first in lost
    assert begin(first) == begin(first) == []
    assert statuses(store, first) == {"REQ-001": "accepted"}
    # What was called a duplicate of one that is gone is looked at anew.
    assert take(store, "judge", at=1) == "zoo/REQ-001"
