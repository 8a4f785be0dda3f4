"""The rehearsal model's requirements: a phase that was rewound continues where it was."""

from pathlib import Path

import pytest

from activities.phases.orientation import orientation_messages
from rehearsal import extraction, formulation, strategic
from rehearsal.formulation import choose_formulation_procedure
from rehearsal.procedure_replay import Call, Steps
from rehearsal.rehearsal_plan import RehearsalPlan, RehearsalPlanPhase
from rehearsal.request_view import parse_request_view
from tests.activities.standing import Standing

LISTED = """\
# Candidates

## documents/tea.md
- C-001 · p.1 · must · 0.9 · Tea must be hot.
- C-002 · p.1, 2.1 · must · 0.9 · Cups must be clean.
- C-003 · p.2, 2.1 · must · 0.9 · Milk must be fresh.
"""
DECIDED = {
    extraction.LEFT_OUT: "C-001 · documents/tea.md · not relevant\n",
    "requirements/req_001/requirement.md": "Cups must be clean.\n",
}


def until(job: Standing, steps: Steps, tool: str) -> list[Call]:
    """Follow a procedure, with calls answered by the tools, up to a call of `tool`."""
    batch = next(steps)
    while tool not in [name for name, _ in batch]:
        batch = steps.send([job.call(name, **arguments) for name, arguments in batch])
    return batch


@pytest.mark.parametrize(("issue", "cited"), [("", 3), ("The plan was thin.", 1)])
def test_what_was_decided_stays_when_the_phase_is_done_again(
    tmp_path: Path, issue: str, cited: int
) -> None:
    job = Standing.begin(tmp_path, kind="strategic", agent="creator")
    for path, text in {extraction.LIST: LISTED, **DECIDED}.items():
        job.write(path, text)
    batches = formulation.formulation_todos([("documents/tea.md", 4, 6)])
    job.write(
        "plan.md",
        RehearsalPlan("# Plan", [RehearsalPlanPhase("Formulate", "Each is cited.", batches)]).text,
    )
    snapshot = job.open()
    snapshot.state.issue = issue
    messages = orientation_messages(snapshot, "")
    view = parse_request_view(
        {"messages": [*messages, {"role": "user", "content": "Go on."}], "tools": []}
    )
    [(_, handed)] = until(job, strategic.rehearse_handover(view), "todo_write")
    steps = choose_formulation_procedure(handed["todos"][0]["content"])
    assert steps is not None
    batch = until(job, steps, "add_requirement")
    assert [name for name, _ in batch] == ["add_requirement"] * cited
    assert batch[-1][1]["candidate"] == "C-003"


def test_the_list_is_divided_by_its_headings(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="strategic", agent="creator")
    weak = "- C-004 · p.2 · may · 0.4 · Sugar may be there."
    job.write(
        extraction.LIST,
        "# Candidates\n\n## documents/a.md\n\n- C-001 · p.1 · must · 0.9 · A.\n"
        f"- C-002 · p.1 · must · 0.9 · B.\n\n### Below confidence 0.5\n\n{weak}\n\n"
        f"## documents/none.md\n\nNone.\n\n### Below confidence 0.5\n\n{weak}\n\n"
        "## documents/b.md\n\n- C-001 · p.1 · must · 0.9 · C.\n",
    )
    steps = extraction.read_sections_for_extraction()
    batch = next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send([job.call(name, **arguments) for name, arguments in batch])
    assert end.value.value == [
        ("documents/a.md", 5, 6),
        ("documents/none.md", 14, 14),
        ("documents/b.md", 22, 22),
    ]
