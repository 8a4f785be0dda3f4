"""Candidates, relevance and terms of documents."""

import json

from tests.activities.requirements.drafts import LISTED, OTHER, QUOTE
from tests.activities.standing import Standing


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


def test_candidates_below_the_threshold_are_listed_as_well(job: Standing) -> None:
    weak = "Readers may photograph items without flash.\n"
    job.write("documents/b.md", f"{QUOTE}\n\n{weak}")
    job.write("documents/b.md.txt", f"[page 1]\n{QUOTE}\n\n{weak}")
    answer = job.call("identify_requirement_candidates", path="documents/b.md")
    assert answer.startswith("1 candidate in documents/b.md")
    assert "1 more below confidence 0.5 are listed there" in answer.splitlines()[0]
    page = job.text("candidates/candidates.md")
    assert page.endswith(f"\n\n### Below confidence 0.5\n\n- C-002 · p.1 · may · 0.45 · {weak}")


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
