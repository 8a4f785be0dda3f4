"""Patterns among traces, and the proposals made of them."""

from types import SimpleNamespace
from typing import Any

import pytest

from activities.learning.guard_precision import GuardFigures, measure_guard_precision
from activities.learning.guard_stages import is_guard_ready, next_guard_stage
from activities.learning.proposals import propose_guard
from activities.learning.trace_patterns import extract_patterns
from config.learned_guards import LearnedRevision
from config.schema.agent_sections import Learning
from protocol.trace_requests import CLARIFICATION

SETTINGS = Learning.model_validate({})


def row(id: int, **details: Any) -> Any:
    base = {
        "id": id, "job": f"job-{id % 3}", "agent": "generalist", "project": "", "at": 1000 + id,
        "type": "correction", "source": "person", "guard": "approve", "tool": "write_file",
        "path": f"scratch/{id}.md", "what_happened": f"A person denied write_file: {id}",
        "what_was_correct": "Write under output/ only.", "why": "", "stage": "", "step": id,
    }  # fmt: skip
    return SimpleNamespace(**base | details)


def test_what_is_corrected_again_and_again_is_one_pattern() -> None:
    others = [row(8, what_was_correct="Name the source of each figure."), row(9, tool="edit_file")]
    decided = [row(10, type="decision"), row(11, type="approval"), row(12, stage="experiment")]
    patterns = extract_patterns([*(row(n) for n in range(7)), *others, *decided])
    assert [len(pattern.traces) for pattern in patterns] == [7, 1, 1]
    assert patterns[0].jobs == 3
    assert patterns[0].lesson == "Write under output/ only."


def test_other_words_for_the_same_are_the_same_pattern() -> None:
    wordings = ["Write under output/ only.", "Please write under output/ only!"]
    [pattern] = extract_patterns([row(n, what_was_correct=wordings[n % 2]) for n in range(6)])
    assert len(pattern.traces) == 6


def test_answers_are_alike_by_their_questions() -> None:
    questions = ["May I?", "Does the report name its author?", "May I?"]
    trace_fields = {"guard": CLARIFICATION, "tool": "", "path": "", "what_was_correct": "Yes."}
    rows = [
        row(n, what_happened=f"The agent asked: {one}", why=one, **trace_fields)
        for n, one in enumerate(questions)
    ]
    patterns = extract_patterns(rows)
    assert [pattern.lesson for pattern in patterns] == [
        "The agent asked: May I? Yes.",
        "The agent asked: Does the report name its author? Yes.",
    ]
    assert "The agent asked: May I? Yes." in propose_guard(patterns[0], 5000).prompt


@pytest.mark.parametrize(
    ("times", "trend"),
    [([0, 90, 95, 100], "growing"), ([0, 5, 10, 100], "falling"), ([0, 5, 95, 100], "steady")],
)
def test_a_pattern_has_a_trend(times: list[int], trend: str) -> None:
    [pattern] = extract_patterns([row(n, at=moment) for n, moment in enumerate(times)])
    assert pattern.trend == trend


def proposed(**details: Any) -> LearnedRevision:
    [pattern] = extract_patterns([row(n, **details) for n in range(5)])
    return propose_guard(pattern, 5000)


def test_writes_that_people_refuse_become_a_guard_on_their_folder() -> None:
    proposal = proposed()
    assert proposal.name == "generalist.write_file.scratch"
    assert proposal.stage == "experiment"
    assert proposal.guard
    assert proposal.guard.match.path == ["scratch/*"]
    assert proposal.guard.message == "Write under output/ only."
    assert "T0, T1, T2, T3, T4" in proposal.evidence[1]


def test_logs_that_are_read_whole_become_a_guard_on_their_length() -> None:
    proposal = proposed(tool="read_file", path="logs/server.log", source="hook", guard="size.sh")
    assert proposal.guard
    assert proposal.guard.match.reads_lines == 1000
    assert "*.log" in proposal.guard.match.path


@pytest.mark.parametrize(
    "details",
    [
        {"source": "gate", "guard": "reply", "tool": "", "path": ""},
        {"source": "guard", "guard": "secrets"},
        {"tool": "run_command", "path": ""},
        {"source": "detector", "guard": "same_result", "tool": ""},
    ],
)
def test_what_fits_no_template_is_for_a_person(details: dict[str, Any]) -> None:
    proposal = proposed(**details)
    assert (proposal.stage, proposal.guard) == ("draft", None)
    assert "prompt" in proposal.prompt


def test_each_pattern_of_a_guard_has_a_proposal_of_its_own() -> None:
    gate = {"type": "violation", "source": "gate", "guard": "completion", "what_was_correct": ""}
    missing = {"why": "output/tea.md does not exist.", "tool": "job_complete", **gate}
    names = {
        proposed(**missing).name,
        proposed(**missing | {"why": "The plan has an open phase."}).name,
        proposed(**missing | {"tool": "todo_complete"}).name,
    }
    assert len(names) == 3
    # However often it occurs, it is the same pattern.
    [pattern] = extract_patterns([row(n, **missing) for n in range(9)])
    assert propose_guard(pattern, 9000).name in names


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"project": "a" * 70 + "1"}, {"project": "a" * 70 + "2"}),
        ({"project": "a" * 70, "agent": "coder"}, {"project": "a" * 70, "agent": "tester"}),
        ({"project": "shop"}, {"project": "Shop"}),
        ({"project": "проект"}, {"project": "другой"}),
        ({"path": "тесты/a.md"}, {"path": "заметки/a.md"}),
    ],
)
def test_no_two_proposals_share_a_name(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert proposed(**one).name != proposed(**other).name


def learned(**details: Any) -> LearnedRevision:
    base = proposed().model_dump() | {"since": 0} | details
    return LearnedRevision.model_validate(base)


def hit(id: int, **details: Any) -> Any:
    base = {
        "type": "violation", "source": "guard", "guard": "generalist.write_file.scratch",
        "stage": "experiment",
    }  # fmt: skip
    return row(id, **base | details)


def test_a_hit_is_wrong_when_its_file_is_part_of_an_accepted_result() -> None:
    results = {"job-1": frozenset(["scratch/1.md"])}
    precision = measure_guard_precision(learned(), [hit(n) for n in range(10)], results)
    assert (precision.evaluations, precision.wrong) == (10, 1)


def test_a_hit_is_wrong_when_a_person_approved_that_call() -> None:
    approved = row(3, type="approval")
    precision = measure_guard_precision(learned(), [*(hit(n) for n in range(10)), approved], {})
    assert (precision.evaluations, precision.wrong) == (10, 1)


def test_a_hit_is_not_wrong_when_a_person_approved_another_call_of_its_reply() -> None:
    approved = row(3, type="approval", path="output/tea.md")
    assert measure_guard_precision(learned(), [hit(3), approved], {}).wrong == 0


@pytest.mark.parametrize("path", ["./scratch/1.md", "scratch//1.md", "scratch/./1.md"])
def test_a_file_is_the_same_however_it_is_spelled(path: str) -> None:
    results = {"job-1": frozenset(["scratch/1.md"])}
    assert measure_guard_precision(learned(), [hit(1, path=path)], results).wrong == 1
    proposal = proposed(path=path)
    assert proposal.guard
    assert proposal.guard.match.path == ["scratch/*"]


def test_a_refusal_is_wrong_when_a_person_bypassed_it() -> None:
    refused = [hit(n, stage="") for n in range(10)]
    bypassed = [row(20, type="approval", guard="generalist.write_file.scratch")]
    precision = measure_guard_precision(
        learned(stage="active"), [*refused, *bypassed], {"job-1": frozenset(["scratch/1.md"])}
    )
    assert (precision.evaluations, precision.wrong) == (10, 1)


def test_what_was_before_a_guard_as_it_is_now_does_not_count() -> None:
    assert (
        measure_guard_precision(learned(since=1005), [hit(n) for n in range(10)], {}).evaluations
        == 5
    )


def test_a_guard_is_ready_after_enough_evaluations_of_which_few_were_wrong() -> None:
    assert not is_guard_ready(GuardFigures(19, 0), SETTINGS)
    assert is_guard_ready(GuardFigures(20, 1), SETTINGS)
    assert not is_guard_ready(GuardFigures(20, 2), SETTINGS)


def test_an_active_guard_that_is_wrong_too_often_goes_back() -> None:
    assert next_guard_stage("active", GuardFigures(20, 2), SETTINGS) is None
    assert next_guard_stage("active", GuardFigures(20, 3), SETTINGS) == (
        "experiment", "went back by itself: 20 evaluations, 3 wrong (15%)",
    )  # fmt: skip


def test_a_guard_becomes_active_by_itself_only_when_configured() -> None:
    assert next_guard_stage("experiment", GuardFigures(20, 0), SETTINGS) is None
    alone = SETTINGS.model_copy(update={"promote": True})
    assert (next_guard_stage("experiment", GuardFigures(20, 0), alone) or ("",))[0] == "active"
