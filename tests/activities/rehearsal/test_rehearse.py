"""Whole jobs of the rehearsal model, against a runner in memory."""

import json
from collections import Counter

import pytest

from activities.rehearsal import ZeroCost, rehearse
from tests.activities.rehearsal.fake_runner import TODOS, FakeRunner

INSTRUCTIONS = [
    "Compare three storage engines. Put it in output/comparison.md. Say which fits small teams.",
    "# Task\n\n"
    + "".join(f"{n}. Describe part number {n} of the ordinance in detail\n" for n in range(1, 15)),
    "# Scope\n\n- write `output/data.json` with deadlines\n- [ ] explain them in notes/why.md\n",
    "go",
]


def document(count: int, pages: int = 12) -> list[str]:
    """Pages of a policy with so many sentences of obligation."""
    lines: list[list[str]] = [[f"Page {page + 1} gives background."] for page in range(pages)]
    for number in range(count):
        doubt = " perhaps" if number % 17 == 16 else ""
        sentence = f"The controller must keep record {number + 1} of processing and report it"
        lines[number * pages // max(count, 1)].append(sentence + doubt)
    return ["\n".join(page) for page in lines]


@pytest.mark.parametrize("instructions", INSTRUCTIONS)
def test_generalist_completes_any_instructions(instructions: str) -> None:
    job = FakeRunner(rehearse, "generalist", instructions, limit=400).run()
    assert job.result
    assert job.unoffered == []
    assert job.errors == []
    assert job.result["deliverables"]
    assert "output/summary.md" in job.result["deliverables"]
    assert "- [ ]" not in job.files["plan.md"]


def test_generalist_writes_the_files_the_instructions_name() -> None:
    job = FakeRunner(rehearse, "generalist", INSTRUCTIONS[0]).run()
    assert "output/comparison.md" in job.files
    job = FakeRunner(rehearse, "generalist", INSTRUCTIONS[2]).run()
    assert json.loads(job.files["output/data.json"])
    assert "notes/why.md" in job.files


def test_generalist_reads_documents() -> None:
    documents = {"documents/law.pdf": ["The ordinance describes deadlines."]}
    job = FakeRunner(rehearse, "generalist", INSTRUCTIONS[0], documents).run()
    assert job.result
    assert "The ordinance describes deadlines." in job.files["notes/source_1.md"]


@pytest.mark.parametrize(
    ("count", "fewest", "most"), [(0, 40, 80), (5, 50, 90), (60, 120, 180), (80, 150, 220)]
)
def test_creator_formulates_every_candidate(count: int, fewest: int, most: int) -> None:
    documents = {"documents/policy.pdf": document(count)}
    job = FakeRunner(rehearse, "creator", "# Requirement extraction", documents).run()
    assert job.result
    assert job.unoffered == []
    assert fewest <= job.model_calls <= most
    listed = json.loads(job.files["output/requirements.json"])
    irrelevant = count // 17
    assert len(listed) == job.requirements == count - irrelevant
    assert job.result["summary"].startswith(
        f"Of {count} candidates found in 1 document, {len(listed)} " if count else "No requirement"
    )
    assert job.files["notes/open_questions.md"].count(" · not relevant") == irrelevant
    assert len({entry["text"] for entry in listed}) == len(listed)


def test_phases_grow_with_the_document() -> None:
    short = FakeRunner(rehearse, "creator", "", {"documents/a.pdf": document(10)}).run()
    long = FakeRunner(rehearse, "creator", "", {"documents/a.pdf": document(60)}).run()
    assert sum("Formulate" in name for name in short.phases) == 1
    assert sum("Formulate" in name for name in long.phases) == 2


def test_a_document_without_candidates_ends_in_a_job_that_says_so() -> None:
    job = FakeRunner(rehearse, "creator", "", {"documents/story.pdf": document(0)}).run()
    assert job.result
    assert "No requirement candidates were found" in job.result["summary"]
    assert json.loads(job.files["output/requirements.json"]) == []


def test_creator_works_through_several_documents() -> None:
    documents = {"documents/a.pdf": document(12), "documents/b c.docx": document(7, 3)}
    job = FakeRunner(rehearse, "creator", "", documents).run()
    assert job.result
    listed = json.loads(job.files["output/requirements.json"])
    assert Counter(entry["source"] for entry in listed) == {
        "documents/a.pdf": 12,
        "documents/b c.docx": 7,
    }


def test_results_cut_in_the_middle_lose_nothing() -> None:
    documents = {"documents/policy.pdf": document(60)}
    job = FakeRunner(rehearse, "creator", "", documents, result_characters=3000).run()
    assert job.result
    assert job.requirements == 57


@pytest.mark.parametrize("every", [2, 3, 5, 7])
@pytest.mark.parametrize("agent", ["generalist", "creator"])
def test_errors_of_tools_hold_nothing_up(agent: str, every: int) -> None:
    spared = ("todo_complete", "todo_write", "job_complete")

    def inject(number: int, tool: str) -> str | None:
        return "Error: broken" if number % every == 0 and tool not in spared else None

    documents = {"documents/policy.pdf": document(30)}
    job = FakeRunner(rehearse, agent, INSTRUCTIONS[0], documents, inject=inject).run()
    assert job.result
    assert job.unoffered == []


def test_a_tool_that_never_works_holds_nothing_up() -> None:
    def inject(number: int, tool: str) -> str | None:
        return "Error: down" if tool in ("read_file", "cite_document", "list_files") else None

    documents = {"documents/policy.pdf": document(30)}
    job = FakeRunner(rehearse, "creator", "", documents, inject=inject, limit=300).run()
    assert job.unoffered == []
    assert job.model_calls <= 300


def test_a_refused_completion_is_asked_for_differently() -> None:
    refusals = iter(["Error: the deliverable output/comparison.md is empty"])

    def inject(number: int, tool: str) -> str | None:
        return next(refusals, None) if tool == "job_complete" else None

    job = FakeRunner(rehearse, "generalist", INSTRUCTIONS[0], inject=inject).run()
    assert job.result
    assert "output/comparison.md" not in job.result["deliverables"]
    assert "output/comparison.md" in job.result["unresolved"][0]


def test_a_phase_taken_back_is_done_again_without_doubles() -> None:
    job = FakeRunner(rehearse, "creator", "", {"documents/policy.pdf": document(20)})
    job.begin("strategic", "bootstrap", "Understand and plan", TODOS["bootstrap"])
    while job.requirements < 10:
        job.turn()
    job.todo_rewind("the citations were thought to be wrong")
    while job.result is None and job.model_calls < 400:
        job.turn()
    assert job.result
    assert "Revised in phase" in job.files["plan.md"]
    texts = [entry["text"] for entry in json.loads(job.files["output/requirements.json"])]
    assert len(texts) == len(set(texts)) == 19


def test_summaries_are_made_of_messages_and_of_transcripts() -> None:
    job = FakeRunner(rehearse, "generalist", INSTRUCTIONS[0]).run()
    assert "`workspace.md`, `plan.md`" in job.summaries[0]
    told = 'assistant: write_file({"path": "a.md", "content": "x"})\ntool: Error: no\n'
    told += 'assistant:  todo_complete({"notes": "It is \\"done\\"'
    messages = [{"role": "system", "content": "s"}, {"role": "user", "content": told}]
    text = rehearse({"messages": messages}).content or ""
    assert "Tool calls made: 2. Files changed: `a.md`." in text
    assert '- It is "done"' in text
    assert "Calls refused: 1." in text


@pytest.mark.parametrize(
    ("model", "calls"),
    [
        (ZeroCost(steps=50), 50 + 6),
        (ZeroCost(steps=50, tool="write_file"), 50 + 6),
        (ZeroCost(steps=30, tool="read_file", todos=20), 30 + 6),
        (ZeroCost(steps=50, tool="alternate", todos=10, phases=2), 100 + 11),
    ],
)
def test_zero_cost_makes_just_the_steps_it_was_asked_for(model: ZeroCost, calls: int) -> None:
    job = FakeRunner(model, "generalist", "").run()
    assert job.result
    assert job.model_calls == calls
    assert job.errors == []
