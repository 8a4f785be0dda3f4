"""Requirements written down with their citations."""

import json
from typing import Any

import pytest

from activities.phases.snapshot_transition import restore_phase_start
from activities.preparation.fork import begin_fork
from activities.stores.relational_store import RelationalStore
from config.agent_files import amend_agent_config
from tests.activities.requirements.drafts import (
    LISTED,
    OTHER,
    QUOTE,
    requirement_arguments,
    stored_texts,
)
from tests.activities.standing import AT, JOB, Standing
from tests.activities.stores.filling import (
    list_job_requirements,
)


def test_a_requirement_is_from_an_open_candidate(job: Standing) -> None:
    job.write("documents/a.md.txt", f"[page 1]\n{QUOTE}\n{OTHER}\n\nDoors must be locked.\n")
    way_out = (
        "Nothing was written. collect_requirements names those that are open. Leave `candidate` "
        "out for what no candidate says, or for another statement of a settled one."
    )

    def add(candidate: str) -> str:
        return job.call("add_requirement", **requirement_arguments(), candidate=candidate)

    assert add("C-12") == (f"Error: candidate: documents/a.md has no candidate C-12. {way_out}")
    assert job.open().files.entry("requirements") is None
    assert add("C-001").startswith("REQ-001")
    job.call("set_sentences_aside", path="documents/a.md", reason="By the board.", ids=["C-003"])
    assert add("C-001") == (
        f"Error: candidate: C-001 of documents/a.md is settled: REQ-001 is from it. {way_out}"
    )
    assert add("C-003").startswith(
        "Error: candidate: C-003 of documents/a.md is settled: set aside by the rule "
        "documents/a.md, C-003: By the board. Nothing was written."
    )
    job.call("delete_file", path="requirements/req_001/final.json")
    assert add("C-001").startswith("REQ-002")


def test_a_candidate_among_others_of_a_numbered_paragraph_is_cited_alone(job: Standing) -> None:
    card = "Visitors may be given a card for one day."
    rooms = "A visitor's card must not open rooms with gas bottles."
    numbered = [f"1.{n} Room {n} must be locked." for n in range(1, 9)]
    paragraphs = "\n\n".join([*numbered, f"1.9 {card} {rooms}"])
    job.write("documents/a.md.txt", f"[page 1]\n{paragraphs}\n")
    words: dict[str, Any] = {"type": "process", "reasoning": "It binds.", "confidence": 0.9}
    assert job.call("add_requirement", **words, text=card, candidate="C-009").startswith(
        "REQ-001 (may)"
    )
    final = json.loads(job.text("requirements/req_001/final.json"))
    assert [each["quote"] for each in final["citations"]] == [card]
    assert job.call("add_requirement", **words, text=rooms, candidate="C-010").startswith(
        "REQ-002 (must not)"
    )


def test_a_candidate_is_cited_by_its_id_with_the_words_before_its_list(job: Standing) -> None:
    text = "Staff must, each evening:\n\n- lock all doors;\n- close all windows;\n"
    job.write("documents/a.md.txt", f"[page 1]\n{text}")
    job.write("documents/b.md", OTHER)
    job.write("documents/b.md.txt", f"[page 1]\n{OTHER}\n")
    words: dict[str, Any] = {"type": "process", "reasoning": "It binds.", "confidence": 0.9}
    said = {**words, "text": "Staff must close all windows each evening."}
    assert job.call("add_requirement", **said, candidate="C-003").startswith("REQ-001 (must)")
    final = json.loads(job.text("requirements/req_001/final.json"))
    assert [each["quote"] for each in final["citations"]] == [
        "Staff must, each evening:",
        "close all windows;",
    ]
    other = {**words, "text": OTHER}
    assert "C-001. Say of which document." in job.call(
        "add_requirement", **other, candidate="C-001"
    )
    told = job.call("add_requirement", **other, candidate="C-001", document="documents/b.md")
    assert told.startswith("REQ-002")
    missing = job.call("add_requirement", **other, candidate="C-077")
    assert missing == "Error: candidate: the job has no C-077. Give its words in quotes."


def test_a_candidate_is_open_where_a_requirement_is_from_another_documents(job: Standing) -> None:
    job.write("documents/b.md", OTHER)
    job.write("documents/b.md.txt", f"[page 1]\n{OTHER}\n")
    quotes = [{"path": "documents/b.md", "page": 1, "quote": OTHER}]
    job.call("add_requirement", **requirement_arguments(), candidate="C-001")
    assert job.call("add_citation", requirement="REQ-001", quotes=quotes).startswith("REQ-001")
    elsewhere = requirement_arguments(OTHER) | {"quotes": quotes, "citations": []}
    assert job.call("add_requirement", **elsewhere, candidate="C-001").startswith("REQ-002")
    again = job.call("add_requirement", **elsewhere, candidate="C-001")
    assert "C-001 of documents/b.md is settled: REQ-002 is from it" in again


def test_a_candidate_that_an_agent_lists_is_as_good_as_one_of_the_text(job: Standing) -> None:
    job.call("identify_requirement_candidates", path="documents/a.md")
    entries = json.loads(job.text(LISTED))
    entries[0]["candidates"].append(entries[0]["candidates"][0] | {"id": "T-001"})
    job.write(LISTED, json.dumps(entries))
    assert job.call("add_requirement", **requirement_arguments(), candidate="T-001").startswith(
        "REQ-001"
    )
    assert "REQ-001 is from it" in job.call(
        "add_requirement", **requirement_arguments(), candidate="T-001"
    )
    job.write(LISTED, "[{}]")
    answer = job.call("add_requirement", **requirement_arguments(), candidate="T-002")
    assert answer.startswith(f"Error: {LISTED}: 0.document: Field required.")


def test_quotes_are_cited_in_the_same_call_all_or_none(job: Standing) -> None:
    def said(*quotes: str, page: int = 1) -> dict[str, Any]:
        quotations = [{"path": "documents/a.md", "page": page, "quote": quote} for quote in quotes]
        return requirement_arguments() | {"citations": None, "quotes": quotations}

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
    assert "Nothing is cited" in job.call(
        "add_requirement", **(requirement_arguments() | {"citations": []})
    )
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
    job.call("add_requirement", **requirement_arguments())
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
            "add_requirement",
            **(
                requirement_arguments()
                | {"text": quote, "citations": None, "quotes": [quotation]}
                | further
            ),
        )

    assert add("It may be cold.").startswith("REQ-001 (may)")
    assert add("It should be warm.").startswith("REQ-002 (should)")
    assert add("It must not be hot.").startswith("REQ-003 (must not)")
    assert add("The sky over it was blue.").startswith("REQ-004 (must)")
    refused = add("It should be warm.", text="Warmth of it is kept.", force="must")
    assert refused == (
        "Error: text: it says that it is a must, and they say should. Nothing was written. Say "
        "what the passages say, or quote the passage that says it as well."
    )
    stored = RelationalStore(job.root).run(lambda c: list_job_requirements(c, JOB))
    assert [each.force for each in stored] == ["may", "should", "must not", "must"]
    assert add("It may be cold.") == (
        "Error: REQ-001 cites that already: citation CIT-0002: documents/b.md, page 1: “It may be "
        "cold.”. Nothing was written."
    )


def test_what_two_documents_say_is_one_requirement_with_both_passages(job: Standing) -> None:
    job.write("documents/b.md", OTHER)
    job.write("documents/b.md.txt", f"[page 1]\n{OTHER} {QUOTE}\n")
    said = requirement_arguments(OTHER) | {"quotes": None}
    for path in ("documents/a.md", "documents/b.md"):
        told = job.call(
            "add_requirement", **said, document=path, candidate=f"C-00{1 + (path[-4] == 'a')}"
        )
    assert told.startswith("REQ-001 cites also citation CIT-0003: documents/b.md, page 1")
    final = json.loads(job.text("requirements/req_001/final.json"))
    assert [each["document"] for each in final["citations"]] == ["documents/a.md", "documents/b.md"]
    assert "Not covered: 2 of 4" in job.call("collect_requirements")
    weaker = job.call("add_requirement", **said | {"force": "should"}, document="documents/b.md",
                      candidate="C-001")  # fmt: skip
    assert weaker.startswith("Error: text: it says that it is a should, and they say must.")


def test_a_requirement_is_written_down_and_stored_through_one_model(job: Standing) -> None:
    assert job.call("add_requirement", **requirement_arguments()) == (
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


def test_the_id_of_a_deleted_requirement_is_never_given_again(job: Standing) -> None:
    start = job.commit
    for text in (QUOTE, OTHER):
        job.call("add_requirement", **requirement_arguments(text))
    job.call("delete_file", path="requirements/req_002/final.json")
    assert job.call("add_requirement", **requirement_arguments(OTHER)).startswith("REQ-003 ")
    assert stored_texts(job) == {"REQ-001": QUOTE, "REQ-003": OTHER}
    snapshot = job.open()
    restore_phase_start(snapshot, start, with_files=True)
    job.commit = snapshot.save("rewound", AT)
    assert job.call("add_requirement", **requirement_arguments(OTHER)).startswith("REQ-004 ")
    assert job.open().state.without_notes().last_requirement == 0


@pytest.mark.parametrize("work", [[], ["Look again."]])
def test_a_fork_and_its_list_count_requirements_on(job: Standing, work: list[str]) -> None:
    job.call("add_requirement", **requirement_arguments())
    snapshot = job.open()
    begin_fork(snapshot, amend_agent_config(snapshot.config, {"todos.work": work}), "", [], [])
    assert snapshot.state.phase.number == 3
    assert snapshot.state.last_requirement == 1
