"""All requirements of a workspace, and the sentences that they cover."""

import json
import re
from typing import Any

import pytest

from tests.activities.requirements.drafts import OTHER, QUOTE, requirement_arguments
from tests.activities.standing import Standing

RUSSIAN = """Каждый работник обязан пройти инструктаж до начала работы и знать все правила.
Эвакуационные выходы должны быть свободны в любое время; двери не должны запираться на ключ.
Огнетушители необходимо проверять раз в год, и результат проверки записывается в журнал в тот же
день. Курить в помещениях запрещается, кроме мест, которые указаны начальником здания.
Employees must report any fire by phone.
"""
CHECKS = [
    f"The pot in room {n} shall be checked every {n + 1} days by staff." for n in range(1, 31)
]
PATH = {"path": "documents/a.md"}
EVENING = "All staff must do this each evening:\n\n- lock all doors;\n- close all windows;"


def _list(lead_in: str, count: int) -> str:
    items = [f"- lock door {n} with the key of room {n};" for n in range(count)]
    return "\n".join([lead_in, "", *items])


def test_requirements_are_collected_and_what_is_missing_is_told(job: Standing) -> None:
    result = "output/requirements.json"
    written = f"{result} and output/requirements.md."
    assert job.call("collect_requirements").startswith(f"Wrote 0 requirements to {written}")
    assert json.loads(job.text(result)) == []
    job.write("documents/b.md", OTHER)
    job.write("documents/b.md.txt", f"[page 1]\n2.1 Access\nPage one.\n[page 2]\n{OTHER}\n")
    job.call("add_requirement", **requirement_arguments(), candidate="C-001")
    quotation = {"path": "documents/b.md", "page": 2, "quote": OTHER}
    second = requirement_arguments(OTHER) | {"type": "functional", "quotes": [quotation]}
    job.call("add_requirement", **second | {"citations": ["CIT-0001"]})
    finals = [json.loads(job.text(f"requirements/req_00{n}/final.json")) for n in (1, 2)]
    assert job.call("collect_requirements").splitlines() == [
        f"Wrote 2 requirements to {written}",
        "By force: must 2.",
        "By type: functional 1, legal 1.",
        "Pages cited:",
        "- documents/a.md: 1",
        "- documents/b.md: 2",
        "documents/a.md is not complete: binding sentences 1 of 2 (1 cited, 0 set aside); nothing "
        "else stands in it.",
        "documents/b.md is not complete: binding sentences 1 of 1 (1 cited, 0 set aside); of 1 "
        "sentences that nothing cites none was read.",
        "Not covered: 1 of 3 binding sentences are neither cited nor set aside. All of them, in "
        "candidates/uncovered.md:",
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


def test_a_job_is_not_complete_while_a_sentence_is_neither_cited_nor_set_aside(
    job: Standing,
) -> None:
    count, named = job.completion().uncovered
    assert count == "2 of 2 sentences that bind are neither cited nor set aside."
    assert named.startswith(f"documents/a.md C-001 p.1: {QUOTE}; documents/a.md C-002 p.1: ")
    job.call("add_requirement", **requirement_arguments())
    assert job.completion().uncovered[0].startswith("1 of 2 ")
    reason = {"path": "documents/a.md", "reason": "The board has said that it is no matter."}
    for wrong, message in (
        ({"ids": ["C-009"]}, "documents/a.md has no candidate or number C-009."),
        ({"containing": "nobody says this"}, "No binding sentence and no number of documents/a.md"),
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
        "Covered: of 2 binding sentences 1 are cited and 1 set aside.",
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


def test_what_is_set_aside_in_bulk_is_judged_by_the_sample(job: Standing) -> None:
    job.write("documents/a.md.txt", f"[page 1]\n{EVENING}\n\nThe house is old and grey.\n")
    path = {"path": "documents/a.md"}
    # One rule for all, and one for each with the same reason, are the same.
    for id in ("C-001", "C-002", "C-003"):
        job.call("set_sentences_aside", **path, ids=[id], reason="They ask for nothing.")
    collected = job.call("collect_requirements")
    assert "S-003 · p.1 · close all windows; [binds, and was set aside" in collected
    assert "S-004 · p.1 · The house is old and grey.\n" in collected

    def judge(**reasons: str) -> str:
        marks = [
            {"id": f"S-00{id[1]}", "is_requirement": not why, "reason": why or "It binds staff."}
            for id, why in reasons.items()
        ]
        return job.call("judge_sample", **path, marks=marks)

    careless = judge(**{f"s{n}": "No word of duty." for n in range(1, 5)})
    assert careless.startswith("Not recorded: S-001, S-002, S-003. They bind by their words or")
    assert job.completion().uncovered == []
    assert "3 sampled sentences wait for judge_sample" in job.completion().badly_read[0]
    refuted = judge(s1="The list says it.", s2="Doors lock by themselves.", s3="")
    assert "Cite the requirements found" in refuted
    assert job.completion().uncovered[0].startswith("3 of 3 ")
    requirement: dict[str, Any] = {
        "text": "All staff close the windows.",
        "type": "process",
        "confidence": 1,
    }
    added = job.call("add_requirement", **requirement, reasoning="It binds.", candidate="C-003")
    assert added.startswith("REQ-001")


def test_a_reason_of_its_own_counts_for_what_was_set_aside_in_bulk(job: Standing) -> None:
    job.write("documents/a.md.txt", f"[page 1]\n{EVENING}\n\nIt is a sample text.\n")
    path = {"path": "documents/a.md"}
    job.call("set_sentences_aside", **path, ids=["C-001", "C-002", "C-003"], reason="An example.")
    job.call("collect_requirements")
    marks = [
        {"id": f"S-00{n}", "is_requirement": False, "reason": f"Part {n} of the example."}
        for n in range(1, 5)
    ]
    told = job.call("judge_sample", **path, marks=marks)
    assert told.startswith(
        "documents/a.md is not complete: binding sentences 3 of 3 (0 cited, 3 set aside); all 4 "
        "sentences that nothing cites were read: none is a requirement; no requirement is from it."
    )
    # A document without any requirement is for a person to look at.
    assert job.completion().badly_read == ["documents/a.md: no requirement is from it"]
    assert job.completion(unresolved=["documents/a.md: has examples alone"]).badly_read == []


def test_what_was_read_badly_is_never_called_complete(job: Standing) -> None:
    job.call("add_requirement", **requirement_arguments())
    broken = "(This page could not be read: no map of its letters)"
    job.write("documents/a.md.txt", f"[page 1]\n{QUOTE}\n[page 2]\n{broken}\n")
    assert job.call("collect_requirements").splitlines()[-1] == (
        "Nothing is complete of documents/a.md: Could not be read: page 2."
    )
    assert job.completion().badly_read == ["documents/a.md: Could not be read: page 2"]
    explained = ["documents/a.md: page 2 could not be read and has to be looked at by hand."]
    assert job.completion(unresolved=explained).badly_read == []


def test_a_document_in_a_language_without_known_words_is_never_called_complete(
    job: Standing,
) -> None:
    job.call("add_requirement", **requirement_arguments())
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
    job.call("add_requirement", **requirement_arguments())
    job.call(
        "add_requirement", **requirement_arguments(OTHER) | {"quotes": elsewhere, "citations": []}
    )
    job.call("add_requirement", **requirement_arguments("An invoice must be kept for ten years."))
    job.call("collect_requirements")
    titles = [
        line
        for line in job.text("output/requirements.md").splitlines()
        if line.startswith(("## documents", "### "))
    ]
    assert [title.split(" · ")[0] for title in titles] == [
        "## documents/a.md", "### REQ-001", "### REQ-003", "## documents/b.md", "### REQ-002"
    ]  # fmt: skip


def _begin_checks(job: Standing, further: str = "") -> None:
    text = "\n\n".join([*CHECKS, further])
    job.write("documents/a.md.txt", f"[page 1]\n{text}\n")


def _add_check(job: Standing, text: str, *quotes: str) -> str:
    cited = [PATH | {"page": 1, "quote": quote} for quote in quotes]
    details: dict[str, Any] = {"type": "process", "reasoning": "It says so.", "confidence": 0.9}
    return job.call("add_requirement", text=text, quotes=cited, **details)


@pytest.mark.parametrize(
    "quotes", [["\n\n".join(CHECKS)], CHECKS[:20]], ids=["one long quote", "many quotes"]
)
def test_a_requirement_covers_no_more_than_its_statement_has_parts(
    job: Standing, quotes: list[str]
) -> None:
    _begin_checks(job)
    _add_check(job, "The rooms shall be checked by staff.", *quotes)
    told = job.call("collect_requirements")
    assert "documents/a.md is not complete: binding sentences 3 of 30" in told
    quoted = 27 if len(quotes) == 1 else 17
    assert f"{quoted} of them stand in quotes of requirements that say less: give" in told
    assert f"{quoted} of them stand in quotes" in job.completion().uncovered[0]
    # What says all of it may be one requirement.
    _add_check(job, " ".join(CHECKS[:3]), "\n\n".join(CHECKS[:3]))
    assert job.completion().uncovered[0].startswith("27 of 30 ")
    for each in CHECKS[3:]:
        _add_check(job, each, each)
    assert job.completion().uncovered == []
    assert "documents/a.md is complete: binding sentences 30 of 30 (30 cited" in job.call(
        "collect_requirements"
    )


@pytest.mark.parametrize(
    ("text", "statement", "covered"),
    [
        # Items end the sentence before their list, if that says something.
        (EVENING, "The round of the evening shall be done.", 3),
        (_list("Staff must do this each evening:", 10), "The round shall be done.", 11),
        (_list("Staff must do this each evening:", 30), "The round shall be done.", 13),
        (_list("The system shall:", 10), "It shall comply with the list.", 4),
        # What stands in several places is one sentence.
        ("\n\n".join(["The door must be shut.", CHECKS[0]] * 5), "Doors must be closed.", 10),
    ],
    ids=["list", "long list", "page of items", "label", "repeated"],
)
def test_of_lists_and_repeated_sentences(
    job: Standing, text: str, statement: str, covered: int
) -> None:
    job.write("documents/a.md.txt", f"[page 1]\n{text}\n")
    assert _add_check(job, statement, text).startswith("REQ-001")
    assert f": binding sentences {covered} of" in job.call("collect_requirements")


def test_other_sentences_of_a_long_quote_are_sampled(job: Standing) -> None:
    names = ("Ada", "Bo", "Cy", "Di", "Ed")
    rest = [f"Visitor {name} waits in the hall and signs a list." for name in names]
    job.write("documents/a.md.txt", "[page 1]\n" + "\n\n".join([CHECKS[0], *rest]) + "\n")
    _add_check(job, CHECKS[0], "\n\n".join([CHECKS[0], *rest]))
    assert "of 2 sentences that nothing cites" in job.call("collect_requirements")


@pytest.mark.parametrize(
    "rules",
    [
        [{"pages": "1"}],
        [{"containing": "shall be checked"}],
        [{"containing": "shall be checked", "covered_by": "REQ-001"}],
        [{"ids": [f"C-{n:03d}"], "reason": f"Room {n} is no matter."} for n in range(1, 31)],
        [{}],
    ],
    ids=["place", "words", "covered", "one by one", "whole"],
)
def test_what_is_set_aside_by_any_rule_is_sampled(
    job: Standing, rules: list[dict[str, Any]]
) -> None:
    _begin_checks(job)
    _add_check(job, CHECKS[0], CHECKS[0])
    for rule in rules:
        job.call("set_sentences_aside", **PATH | {"reason": "It is no matter."} | rule)
    assert job.completion().uncovered == []
    assert "of 29 sentences that nothing cites 0 were read" in job.call("collect_requirements")
    assert "20 sampled sentences wait for judge_sample" in job.completion().badly_read[0]
    # A requirement among them ends the rule, whatever it is by.
    mark = {"id": "S-001", "is_requirement": True, "reason": "Staff has to do it."}
    assert "Cite the requirements found" in job.call("judge_sample", **PATH, marks=[mark])
    assert job.completion().uncovered[0].startswith(f"{1 if len(rules) > 1 else 29} of 30 ")


@pytest.mark.parametrize("cited", [1, 20], ids=["mostly set aside", "mostly cited"])
def test_what_is_mostly_set_aside_is_left_to_a_person(job: Standing, cited: int) -> None:
    _begin_checks(job)
    for each in CHECKS[:cited]:
        _add_check(job, each, each)
    ids = [f"C-{n:03d}" for n in range(cited + 1, 31)]
    job.call("set_sentences_aside", **PATH, ids=ids, reason="They are examples.")
    told = job.call("collect_requirements")
    while "for judge_sample(" in told:
        marks = [
            {"id": id, "is_requirement": False, "reason": f"{id} is an example."}
            for id in re.findall(r"- (S-\d+) ", told)
        ]
        told = job.call("judge_sample", **PATH, marks=marks)
    found = "for a person to confirm, since more" if cited == 1 else "complete: binding sentences"
    assert told.startswith(f"documents/a.md is {found}")
    assert job.completion().badly_read == []


def test_sentences_that_a_requirement_repeats_are_covered_without_a_sample(job: Standing) -> None:
    again = [f"Staff shall check the pot in room 1 every 2 days{end}" for end in (".", "!", ";")]
    _begin_checks(job, "\n\n".join(again))
    for each in CHECKS:
        _add_check(job, each, each)
    covered = {"reason": "It is said twice.", "covered_by": "REQ-001", "containing": "shall check"}
    assert job.call("set_sentences_aside", **PATH, **covered).startswith("Set aside 3 sentences")
    told = job.call("collect_requirements")
    assert "is complete: binding sentences 33 of 33 (30 cited, 3 set aside); nothing else" in told


def test_what_is_set_aside_after_a_sample_is_sampled_as_well(job: Standing) -> None:
    _begin_checks(job, "It was warm in the house.")
    for each in CHECKS:
        _add_check(job, each, each)
    job.call("collect_requirements")
    mark = {"id": "S-001", "is_requirement": False, "reason": "It tells of the weather."}
    assert "is complete" in job.call("judge_sample", **PATH, marks=[mark])
    for n in range(2, 31):
        job.put(lambda files: files.delete(f"requirements/req_{n:03d}"))  # noqa: B023
    job.call("set_sentences_aside", **PATH, reason="It is no matter.", containing="checked")
    assert "more was set aside" in job.completion().badly_read[0]
    assert "of 29 sentences that nothing cites 0 were read" in job.call("collect_requirements")


def test_a_document_set_aside_as_a_whole_is_left_to_a_person(job: Standing) -> None:
    _begin_checks(job)
    job.call("set_sentences_aside", **PATH, reason="It is no part of the work.")
    why = "set aside as a whole, and no requirement is from it"
    assert f"documents/a.md: {why}." in job.call("collect_requirements")
    assert job.completion().badly_read == [f"documents/a.md: {why}"]
    assert job.completion(unresolved=["documents/a.md: out of scope by the brief"]).badly_read == []


def test_a_document_whose_sample_shows_nothing_is_not_called_complete(job: Standing) -> None:
    lines = [f"V1.{n} Passwords of kind {n} have {n + 8} signs and expire." for n in range(1, 13)]
    job.write("documents/a.md.txt", "[page 1]\n" + "\n\n".join(lines) + "\n")
    job.call("collect_requirements")
    marks = [
        {"id": f"S-{n:03d}", "is_requirement": False, "reason": "Background."} for n in range(1, 13)
    ]
    told = job.call("judge_sample", **PATH, marks=marks)
    assert told.startswith("documents/a.md is not complete:")
    assert "at least 0 %" not in told
    assert job.completion().badly_read == ["documents/a.md: no requirement is from it"]
