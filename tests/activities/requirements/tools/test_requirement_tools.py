"""Requirement tools on a workspace and its store."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError

from activities.phases.phase_change import restore_phase_start
from activities.preparation.fork import begin_fork
from activities.requirements import requirement_rows, store_sync
from activities.steps.close_job import CloseJobActivity
from activities.stores.relational_store import RelationalStore
from activities.web import FetchedPage, read_page_source
from config.agent_files import amend_agent_config
from protocol.endings import CloseRequest
from tests.activities.search.endpoint import serving
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
    # The text beside an input was made by the system.
    for folder in ("documents/laws", "output"):
        job.write(f"{folder}/a.md", OTHER)
        job.write(f"{folder}/a.md.txt", f"[page 1]\n{OTHER}\n")
    paths = ["documents/a.md", "documents/laws/a.md", "output/a.md"]
    # Identifying candidates again replaces the earlier ones.
    for path in (*paths, "documents/laws/a.md"):
        assert "candidates/candidates.md" in job.call("identify_requirement_candidates", path=path)
    entries = json.loads(job.text(LISTED))
    assert [each["document"] for each in entries] == paths
    assert [len(each["candidates"]) for each in entries] == [2, 1, 1]
    page = job.text("candidates/candidates.md")
    assert page.startswith(
        f"# Candidates\n\n## documents/a.md\n\n- C-001 · p.1 · must · 0.94 · {QUOTE}\n"
    )
    # An agent's additions to those of another document stay.
    entries[2]["candidates"][0]["remark"] = "See annex."
    job.write(LISTED, json.dumps(entries))
    job.call("identify_requirement_candidates", path="documents/a.md")
    assert json.loads(job.text(LISTED)) == entries
    job.write(LISTED, json.dumps(entries).replace('"page": 1', '"page": "one"', 1))
    answer = job.call("identify_requirement_candidates", path="documents/a.md")
    assert answer.startswith(f"Error: {LISTED}: 0.candidates.0.page: ")


def test_requirements_are_collected_and_what_is_missing_is_told(job: Standing) -> None:
    result = "output/requirements.json"
    written = f"{result} and output/requirements.md."
    assert job.call("collect_requirements").startswith(f"Wrote 0 requirements to {written}")
    assert json.loads(job.text(result)) == []
    job.write("documents/b.md", OTHER)
    job.write("documents/b.md.txt", f"[page 1]\n2.1 Access\nPage one.\n[page 2]\n{OTHER}\n")
    job.call("add_requirement", **given(), candidate="C-001")
    quotation = {"path": "documents/b.md", "page": 2, "quote": OTHER}
    second = given(OTHER) | {"type": "functional", "quotes": [quotation]}
    job.call("add_requirement", **second)
    finals = [json.loads(job.text(f"requirements/req_00{n}/final.json")) for n in (1, 2)]
    assert job.call("collect_requirements").splitlines() == [
        f"Wrote 2 requirements to {written}",
        "By force: must 2.",
        "By type: functional 1, legal 1.",
        "Pages cited:",
        "- documents/a.md: 1",
        "- documents/b.md: 2",
        "Not covered: 1 of 3 sentences that say must, must not or should are neither cited nor set "
        "aside. All of them, in candidates/uncovered.md:",
        f"- documents/a.md: C-002 · p.1 · must · 0.90 · {OTHER}",
    ]
    assert json.loads(job.text(result)) == finals
    assert job.text("candidates/uncovered.md").endswith(f"· {OTHER}\n")
    page = job.text("output/requirements.md")
    assert f"### REQ-002 · must · functional\n\n{OTHER}\n\n> {QUOTE}\n" in page
    assert f"> {OTHER}\n>\n> (documents/b.md, page 2, 2.1)\n" in page
    job.write("requirements/req_001/final.json", json.dumps(finals[0] | {"confidence": 7}))
    lines = job.call("collect_requirements").splitlines()
    assert lines[1] == "Left out, to be mended:"
    assert lines[2].startswith("requirements/req_001/final.json: confidence: ")
    assert [each["id"] for each in json.loads(job.text(result))] == ["REQ-002"]


def test_a_requirement_is_from_an_open_candidate(job: Standing) -> None:
    job.write("documents/a.md.txt", f"[page 1]\n{QUOTE}\n{OTHER}\n\nDoors must be locked.\n")
    way_out = (
        "Nothing was written. Leave `candidate` out for what no candidate says, or for another "
        "statement of a settled one."
    )

    def add(candidate: str) -> str:
        return job.call("add_requirement", **given(), candidate=candidate)

    assert add("C-12") == (
        "Error: candidate: documents/a.md has no candidate C-12. The nearest that are open: C-001, "
        f"C-002, C-003. {way_out}"
    )
    assert job.open().files.entry("requirements") is None
    assert add("C-001").startswith("REQ-001")
    job.call("set_sentences_aside", path="documents/a.md", reason="By the board.", ids=["C-003"])
    assert add("C-001") == (
        "Error: candidate: C-001 of documents/a.md is settled: REQ-001 is from it. The nearest "
        f"that are open: C-002. {way_out}"
    )
    assert add("C-003").startswith(
        "Error: candidate: C-003 of documents/a.md is settled: set aside by the rule "
        "documents/a.md, C-003: By the board. The nearest that are open: C-002."
    )
    job.call("delete_file", path="requirements/req_001/final.json")
    assert add("C-001").startswith("REQ-002")


def test_a_candidate_is_open_where_a_requirement_is_from_another_documents(job: Standing) -> None:
    job.write("documents/b.md", OTHER)
    job.write("documents/b.md.txt", f"[page 1]\n{OTHER}\n")
    quotes = [{"path": "documents/b.md", "page": 1, "quote": OTHER}]
    job.call("add_requirement", **given(), candidate="C-001")
    assert job.call("add_citation", requirement="REQ-001", quotes=quotes).startswith("REQ-001")
    elsewhere = given(OTHER) | {"quotes": quotes, "citations": []}
    assert job.call("add_requirement", **elsewhere, candidate="C-001").startswith("REQ-002")
    again = job.call("add_requirement", **elsewhere, candidate="C-001")
    assert "C-001 of documents/b.md is settled: REQ-002 is from it" in again


def test_a_candidate_that_an_agent_lists_is_as_good_as_one_of_the_text(job: Standing) -> None:
    job.call("identify_requirement_candidates", path="documents/a.md")
    entries = json.loads(job.text(LISTED))
    entries[0]["candidates"].append(entries[0]["candidates"][0] | {"id": "T-001"})
    job.write(LISTED, json.dumps(entries))
    assert job.call("add_requirement", **given(), candidate="T-001").startswith("REQ-001")
    assert "REQ-001 is from it" in job.call("add_requirement", **given(), candidate="T-001")
    job.write(LISTED, "[{}]")
    answer = job.call("add_requirement", **given(), candidate="T-002")
    assert answer.startswith(f"Error: {LISTED}: 0.document: Field required.")


def test_quotes_are_cited_in_the_same_call_all_or_none(job: Standing) -> None:
    def said(*quotes: str, page: int = 1) -> dict[str, Any]:
        quotations = [{"path": "documents/a.md", "page": page, "quote": quote} for quote in quotes]
        return given() | {"citations": None, "quotes": quotations}

    before = len(job.open().files.children("citations"))
    answer = job.call(
        "add_requirement",
        **said(QUOTE, "Every invoice must be kept for eleven years.", "Nobody knows this at all."),
    )
    assert answer.splitlines() == [
        "Error: Quote 2: That quote is not on page 1 of documents/a.md. It stands on no page. "
        f"Nearest, on page 1: “{QUOTE}”. Quote what stands there; a sentence that goes on on the "
        "next page takes two quotes, one for each page.",
        "Quote 3: That quote is not on page 1 of documents/a.md. It stands on no page, and no "
        "passage is like it: quote the exact words.",
        "Nothing was written.",
    ]
    assert "there is no page 4" in job.call("add_requirement", **said(QUOTE, page=4))
    assert "Nothing is cited" in job.call("add_requirement", **(given() | {"citations": []}))
    assert len(job.open().files.children("citations")) == before
    assert job.open().files.entry("requirements/req_001") is None
    # The quote is stored as the page has it, and is found again.
    answer = job.call("add_requirement", **said("Every invoice  must be\nkept for ten years."))
    assert answer.startswith("REQ-001 (must) written to requirements/req_001/final.json; ")
    [cited] = json.loads(job.text("requirements/req_001/final.json"))["citations"]
    assert cited == {"id": "CIT-0002", "document": "documents/a.md", "page": 1, "quote": QUOTE}


def test_a_citation_is_added_by_a_tool(job: Standing) -> None:
    quotation = {"path": "documents/a.md", "page": 1, "quote": OTHER}
    assert "no requirement REQ-001" in job.call(
        "add_citation", requirement="REQ-001", quotes=[quotation]
    )
    job.call("add_requirement", **given())
    answer = job.call("add_citation", requirement="REQ-001", quotes=[quotation])
    assert answer == f"REQ-001 cites also citation CIT-0002: documents/a.md, page 1: “{OTHER}”"
    assert "cites that already" in job.call(
        "add_citation", requirement="REQ-001", quotes=[quotation]
    )
    [row] = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    assert [each.quote for each in row.citations] == [QUOTE, OTHER]
    assert job.completion().unstored == []


def test_the_force_is_that_of_the_passage_unless_it_is_given(job: Standing) -> None:
    text = "It may be cold. It should be warm. It must not be hot. The sky over it was blue."
    job.write("documents/b.md", text)
    job.write("documents/b.md.txt", f"[page 1]\n{text}\n")

    def add(quote: str, **further: str) -> str:
        quotation = {"path": "documents/b.md", "page": 1, "quote": quote}
        return job.call(
            "add_requirement", **(given() | {"citations": None, "quotes": [quotation]} | further)
        )

    assert add("It may be cold.").startswith("REQ-001 (may)")
    assert add("It should be warm.").startswith("REQ-002 (should)")
    assert add("It must not be hot.").startswith("REQ-003 (must not)")
    assert add("The sky over it was blue.").startswith("REQ-004 (must)")
    lines = add("It should be warm.", force="must").splitlines()
    assert lines[0].startswith("REQ-005 (must)")
    assert lines[1] == "Its force is must, and its passage says should."
    stored = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    assert [each.force for each in stored] == ["may", "should", "must not", "must", "must"]


def test_a_job_is_not_complete_while_a_sentence_is_neither_cited_nor_set_aside(
    job: Standing,
) -> None:
    count, named = job.completion().uncovered
    assert count == "2 of 2 sentences that say must or should are neither cited nor set aside."
    assert named.startswith(f"documents/a.md C-001 p.1: {QUOTE}; documents/a.md C-002 p.1: ")
    job.call("add_requirement", **given())
    assert job.completion().uncovered[0].startswith("1 of 2 ")
    reason = {"path": "documents/a.md", "reason": "The board has said that it is no matter."}
    for wrong, message in (
        ({"ids": ["C-009"]}, "documents/a.md has no candidate C-009."),
        ({"containing": "nobody says this"}, "No sentence of documents/a.md"),
        ({"pages": "one"}, "pages must be like"),
        ({"below": 0.9}, "below: at most 0.5, the agent's threshold"),
        ({"covered_by": "REQ-007"}, "there is no requirement REQ-007"),
    ):
        assert message in job.call("set_sentences_aside", **reason, **wrong)
    message = job.call("set_sentences_aside", **reason, containing="log in", covered_by="REQ-001")
    assert message.splitlines()[0] == (
        "Set aside 1 sentence by the rule documents/a.md, containing 'log in': The board has said "
        "that it is no matter. (covered by REQ-001)"
    )
    assert job.completion().uncovered == []
    lines = job.call("collect_requirements").splitlines()
    assert lines[-2:] == [
        "Covered: of 2 sentences that say must, must not or should 1 are cited and 1 set aside.",
        "Set aside 1: documents/a.md, containing 'log in': The board has said that it is no matter."
        " (covered by REQ-001)",
    ]
    assert "## Set aside\n\n- Set aside 1: documents/a.md," in job.text("output/requirements.md")
    # Editing this file would avoid giving reasons.
    assert "kept by the system" in job.call(
        "write_file", path="requirements/set_aside.json", content="[]"
    )


def test_rules_set_sentences_aside_in_bulk(job: Standing) -> None:
    text = (
        "# 1.1 Rules\n\nIt must be kept cold. It cannot be kept hot for long.\n\n"
        "# 1.2 Annex\n\nIt must be kept dry.\n\n# 2 Other\n\nIt should be kept dark."
    )
    job.write("documents/a.md.txt", f"[page 1]\n{text}\n[page 2]\nIt must be kept shut.\n")
    reason = {"path": "documents/a.md", "reason": "By a rule of the board."}

    def left(**rule: Any) -> list[str]:
        job.call("set_sentences_aside", **reason, **rule)
        job.call("collect_requirements")
        lines = job.text("candidates/uncovered.md").splitlines()
        return [line.rpartition("kept ")[2] for line in lines if line.startswith("- ")]

    assert left(below=0.5) == ["cold.", "dry.", "dark.", "shut."]
    assert left(section="1.2") == ["cold.", "dark.", "shut."]
    assert left(section="1") == ["dark.", "shut."]
    assert left(pages="2-3") == ["dark."]
    assert left(ids=["C-004"]) == []
    assert job.completion().uncovered == []


def test_what_was_read_badly_is_never_called_complete(job: Standing) -> None:
    job.call("add_requirement", **given())
    broken = "(This page could not be read: no map of its letters)"
    job.write("documents/a.md.txt", f"[page 1]\n{QUOTE}\n[page 2]\n{broken}\n")
    assert job.call("collect_requirements").splitlines()[-1] == (
        "Nothing is complete of documents/a.md: Could not be read: page 2."
    )
    assert job.completion().badly_read == ["documents/a.md: Could not be read: page 2"]
    explained = ["documents/a.md: page 2 could not be read and has to be looked at by hand."]
    assert job.completion(unresolved=explained).badly_read == []


RUSSIAN = """Каждый работник обязан пройти инструктаж до начала работы и знать все правила.
Эвакуационные выходы должны быть свободны в любое время; двери не должны запираться на ключ.
Огнетушители необходимо проверять раз в год, и результат проверки записывается в журнал в тот же
день. Курить в помещениях запрещается, кроме мест, которые указаны начальником здания.
Employees must report any fire by phone.
"""


def test_a_document_in_a_language_without_known_words_is_never_called_complete(
    job: Standing,
) -> None:
    job.call("add_requirement", **given())
    job.call("set_sentences_aside", path="documents/a.md", reason="It is no part of this.")
    job.write("documents/r.md", RUSSIAN)
    job.write("documents/r.md.txt", f"[page 1]\n{RUSSIAN}")
    assert job.completion().uncovered[1].endswith("any fire by phone.")
    told = job.call("identify_requirement_candidates", path="documents/r.md").splitlines()[0]
    assert told.startswith("1 candidate in documents/r.md,")
    assert "Much of it is neither English nor German" in told
    job.call("set_sentences_aside", path="documents/r.md", reason="Said above.", ids=["C-001"])
    last = job.call("collect_requirements").splitlines()[-1]
    assert last.startswith("Nothing is complete of documents/r.md: Much of it is neither English")
    [named] = job.completion().badly_read
    assert named.startswith("documents/r.md: Much of it")
    assert job.completion(unresolved=["documents/r.md: read by me alone"]).badly_read == []


def test_requirements_of_a_document_stand_together_on_the_page(job: Standing) -> None:
    job.write("documents/b.md", OTHER)
    job.write("documents/b.md.txt", f"[page 1]\n{OTHER}\n")
    elsewhere = [{"path": "documents/b.md", "page": 1, "quote": OTHER}]
    job.call("add_requirement", **given())
    job.call("add_requirement", **given(OTHER) | {"quotes": elsewhere, "citations": []})
    job.call("add_requirement", **given())
    job.call("collect_requirements")
    titles = [
        line
        for line in job.text("output/requirements.md").splitlines()
        if line.startswith(("## documents", "### "))
    ]
    assert [title.split(" · ")[0] for title in titles] == [
        "## documents/a.md", "### REQ-001", "### REQ-003", "## documents/b.md", "### REQ-002"
    ]  # fmt: skip


def test_candidates_below_the_threshold_are_listed_as_well(job: Standing) -> None:
    weak = "Readers may photograph items without flash.\n"
    job.write("documents/b.md", f"{QUOTE}\n\n{weak}")
    job.write("documents/b.md.txt", f"[page 1]\n{QUOTE}\n\n{weak}")
    answer = job.call("identify_requirement_candidates", path="documents/b.md")
    assert answer.startswith("1 candidate in documents/b.md")
    assert "1 more below confidence 0.5 are listed there" in answer.splitlines()[0]
    page = job.text("candidates/candidates.md")
    assert page.endswith(f"\n\n### Below confidence 0.5\n\n- C-002 · p.1 · may · 0.45 · {weak}")


def stored(job: Standing) -> dict[str, str]:
    found = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    return {each.id: each.text for each in found}


def test_a_requirement_is_written_down_and_stored_through_one_model(job: Standing) -> None:
    assert job.call("add_requirement", **given()) == (
        "REQ-001 (must) written to requirements/req_001/final.json; "
        f"citation CIT-0001: documents/a.md, page 1: “{QUOTE}”"
    )
    # There is no second copy that could become outdated.
    assert [entry.path for entry in job.open().files.walk("requirements")] == [
        "requirements/req_001/final.json"
    ]
    final = json.loads(job.text("requirements/req_001/final.json"))
    [row] = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    assert json.loads(row.final_json)["citations"] == final["citations"]
    assert json.loads(row.final_json) == final
    assert (row.job, "job" in final) == (JOB, False)


def test_a_retry_doubles_nothing_and_gives_the_same_commit(job: Standing) -> None:
    job.reply(("add_requirement", json.dumps(given())))
    request = job.request()
    replies = [job.run("add_requirement", request, local=False) for _ in range(3)]
    assert len({reply.model_dump_json() for reply in replies}) == 1
    assert stored(job) == {"REQ-001": QUOTE}


def test_a_retry_knows_what_the_first_attempt_deferred(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    job.reply(("add_requirement", json.dumps(given())))
    request = job.request()
    replies = [job.run("add_requirement", request, local=False) for _ in range(2)]
    assert replies[0].commit == replies[1].commit
    assert len(job.open(replies[1].commit).state.deferred_writes) == 1


def test_an_attempt_without_a_result_leaves_nothing_deferred(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.call("add_requirement", **given())
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
    job.call("add_requirement", **given())
    job.call("add_requirement", **given(OTHER))
    assert len(stored(job)) == 2
    job.commit = before
    job.call("add_requirement", **given("Invoices are kept."))
    assert stored(job) == {"REQ-001": "Invoices are kept."}


def test_the_id_of_a_deleted_requirement_is_never_given_again(job: Standing) -> None:
    start = job.commit
    for text in (QUOTE, OTHER):
        job.call("add_requirement", **given(text))
    job.call("delete_file", path="requirements/req_002/final.json")
    assert job.call("add_requirement", **given(OTHER)).startswith("REQ-003 ")
    assert stored(job) == {"REQ-001": QUOTE, "REQ-003": OTHER}
    snapshot = job.open()
    restore_phase_start(snapshot, start, with_files=True)
    job.commit = snapshot.save("rewound", AT)
    assert job.call("add_requirement", **given(OTHER)).startswith("REQ-004 ")
    assert job.open().state.without_notes().last_requirement == 0


@pytest.mark.parametrize("work", [[], ["Look again."]])
def test_a_fork_and_its_list_count_requirements_on(job: Standing, work: list[str]) -> None:
    job.call("add_requirement", **given())
    snapshot = job.open()
    begin_fork(snapshot, amend_agent_config(snapshot.config, {"todos.work": work}), "", [], [])
    assert snapshot.state.phase.number == 3
    assert snapshot.state.last_requirement == 1


def test_a_rewind_withdraws_what_it_undid(job: Standing) -> None:
    before = job.commit
    job.call("add_requirement", **given())
    snapshot = job.open(before)
    environment(local=False).run(store_sync.update_store_after_rewind, job.root, snapshot)
    assert stored(job) == {}
    assert snapshot.state.deferred_writes == []


def test_a_rewind_while_the_store_is_away_is_made_up_for(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = job.commit
    job.call("add_requirement", **given())
    snapshot = job.open(before)
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    environment(local=False).run(store_sync.update_store_after_rewind, job.root, snapshot)
    job.commit = snapshot.save("rewound", AT)
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert job.completion().unstored == []
    assert stored(job) == {}


def test_an_edited_requirement_is_checked_before_it_is_stored(job: Standing) -> None:
    job.call("add_requirement", **given())
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
        assert stored(job) == {"REQ-001": QUOTE}
    job.write("requirements/req_001/final.json", json.dumps(final | {"text": "Kept, invoices."}))
    assert job.completion().unstored == []
    assert stored(job) == {"REQ-001": "Kept, invoices."}


def test_a_store_that_is_away_stops_no_job_until_its_end(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    for text in (QUOTE, OTHER):
        answer = job.call("add_requirement", **given(text))
        assert "REQ-00" in answer
        assert "Deferred" in answer
    assert [entry.kind for entry in job.open().state.deferred_writes] == ["requirements"]
    assert job.open().state.without_notes().deferred_writes == []
    [why] = job.completion().unstored
    assert "does not answer" in why
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert job.completion().unstored == []
    assert stored(job) == {"REQ-001": QUOTE, "REQ-002": OTHER}
    job.call("add_requirement", **given("Invoices are kept."))
    assert job.open().state.deferred_writes == []
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
    closed = await environment(local=False).run(CloseJobActivity(job.root).close_job, request)
    assert job.open(closed.commit).state.deferred_writes == []


def test_similar_ones_are_found_here_and_in_the_store(
    job: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    job.call("add_requirement", **given())
    fill(
        RelationalStore(job.root),
        [requirement(7, "Every invoice must be kept for at least ten years.")],
    )
    fill(RelationalStore(job.root), [requirement(8, OTHER, job="b")], job="b")
    lines = job.call("find_similar_requirements", text=QUOTE).splitlines()
    assert lines[0] == "2 of 3 requirements are alike by their words (threshold 0.30):"
    assert lines[1].startswith("1.00 · duplicate · REQ-001 · draft · Every invoice")
    assert "· similar · maker/REQ-007 · draft ·" in lines[2]
    assert "3 of 3" in job.call("find_similar_requirements", text=QUOTE, threshold=0)
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    answer = job.call("find_similar_requirements", text=QUOTE)
    assert answer.startswith("1 of 1")
    assert "Only this workspace was searched: the store" in answer


def test_a_validator_takes_and_decides(judge: Standing) -> None:
    assert judge.call("take_requirement") == "No draft requirement is left to take."
    fill(RelationalStore(judge.root), [requirement(1), requirement(2), requirement(3)])
    answer = judge.call("take_requirement")
    assert answer == judge.call("take_requirement")
    assert answer.startswith("maker/REQ-001 (data, confidence 0.9")
    assert "- CIT-0001: documents/a.md, page 1: " in answer
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
    assert statuses(RelationalStore(judge.root)) == {
        "REQ-001": "accepted", "REQ-002": "duplicate", "REQ-003": "draft",
    }  # fmt: skip
    judge.call("take_requirement")
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
    judge.call("take_requirement")
    [row] = RelationalStore(judge.root).run(
        lambda c: [requirement_rows.find_requirement_row(c, "maker/REQ-001")]
    )
    assert row is not None
    started = environment().info.started_time
    assert row.taken_until == (started + timedelta(hours=24)).timestamp() * 1000


def test_a_decision_waits_for_its_store(judge: Standing, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(RelationalStore(judge.root), [requirement(1), requirement(2)])
    judge.call("take_requirement")
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    answer = judge.call("decide_requirement", id="maker/REQ-001", status="accepted", reasons="Yes.")
    assert answer.startswith("maker/REQ-001 is accepted.\nDeferred, ")
    assert len(judge.completion().unstored) == 1
    monkeypatch.delenv("LONGHAUL_STORE_URL")
    assert judge.call("take_requirement").startswith("maker/REQ-002")
    assert judge.open().state.deferred_writes == []
    assert statuses(RelationalStore(judge.root)) == {"REQ-001": "accepted", "REQ-002": "draft"}


async def test_what_an_ended_validator_held_is_free(judge: Standing) -> None:
    fill(RelationalStore(judge.root), [requirement(1)])
    judge.call("take_requirement")
    request = CloseRequest(
        root=judge.root.id, commit=judge.commit, at=AT, step=judge.step, status="cancelled"
    )
    await environment(local=False).run(CloseJobActivity(judge.root).close_job, request)
    [row] = RelationalStore(judge.root).run(
        lambda c: [requirement_rows.find_requirement_row(c, "maker/REQ-001")]
    )
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
    source = read_page_source(FetchedPage("https://law.example/a", url, "text/html", None, data))
    job.put(source.put_into)
    good = {"url": url, "quote": QUOTE, "accessed": "2023-11-14"}
    answer = job.call("cite_web", **good)
    assert answer == f"citation CIT-0002: {source.path}, page 1 ({url}): “{QUOTE}”"
    citation = json.loads(job.text("citations/CIT-0002.json"))
    assert (citation["url"], citation["accessed"]) == ("https://law.example/act/1", "2023-11-14")
    assert f"is not in {source.path}" in job.call(
        "cite_web", **(good | {"quote": "Nobody has ever said such a thing."})
    )
    for url in ("https://law.example/act", "https://law.example/act/12", "https://other.example"):
        assert "Fetch it first" in job.call("cite_web", **(good | {"url": url}))
    assert "accessed" in job.call("cite_web", **(good | {"accessed": "yesterday"}))
    for day in ("1994-12-31", "2023-11-16"):
        answer = job.call("cite_web", **(good | {"accessed": day}))
        assert answer.startswith(f"Error: accessed: {day} cannot be")
    answer = job.call("add_requirement", **(given() | {"citations": ["CIT-0002"]}))
    assert answer.startswith("REQ-001")
    [row] = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    assert row.citations[0].url == "https://law.example/act/1"


def test_without_its_store_a_validator_waits(
    judge: Standing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LONGHAUL_STORE_URL", AWAY)
    judge.reply(("take_requirement", "{}"))
    with pytest.raises(ApplicationError, match="does not answer") as caught:
        judge.run("take_requirement", judge.request(), local=False)
    assert caught.value.type == "Dependency"


def test_what_is_compared_leaves_out_what_this_job_judges(tmp_path: Path) -> None:
    with serving() as endpoint:
        embeddings = {"model": "m", "base_url": endpoint.url}
        judge = Standing.begin(
            tmp_path, kind="tactical", agent="validator", set={"embeddings": embeddings}
        )
        first, second = requirement(1, "Invoices kept."), requirement(2, "Storing bills.")
        fill(RelationalStore(judge.root), [first, second])
        assert judge.call("take_requirement").startswith("maker/REQ-001")
        lines = judge.call("find_similar_requirements", text=first.text).splitlines()
        assert lines[0].startswith("1 of 1 ")
        assert "· duplicate · maker/REQ-002 · draft ·" in lines[1]
        endpoint.fails_after = 0
        lines = judge.call("find_similar_requirements", text=first.text).splitlines()
        assert lines[0].startswith("0 of 1 ")
        assert lines[1].startswith("Compared by words alone: the embeddings endpoint failed")
        # An equivalent one exists: 0 would be no verdict.
        assert lines[2].startswith("One that says it in other words may not be among them")


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
    job.call("add_requirement", **given())
    job.call("add_requirement", **given(OTHER))
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
    assert take(RelationalStore(job.root), "judge", at=-1) == "parent/REQ-001"
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
