"""The first phase of a fork."""

from pathlib import Path

from activities.phases.predefined_todos import begin_configured_list
from activities.preparation.fork import begin_fork
from protocol.scope_ledger import scope_from_texts, scope_ledger_line, sync_plan_steps
from tests.activities.standing import Standing


def test_a_fork_that_repeats_its_list_counts_nothing_of_it_as_done(tmp_path: Path) -> None:
    work = ["Make it.", "Test it."]
    job = Standing.begin(tmp_path, kind="tactical", set={"todos.work": work})
    snapshot = job.open()
    snapshot.state.scope = [
        *scope_from_texts(["tea", "milk"]),
        *sync_plan_steps([], [(1, text) for text in work]),
    ]
    snapshot.state.scope[0].status = "completed"
    snapshot.state.add_item("sugar")
    begin_fork(snapshot, snapshot.config, "Once more.", [], [], repeats_list=True)
    assert [item.line for item in snapshot.state.scope] == [
        "S1 (completed): tea",
        "S2 (open): milk",
        "A1 (open): sugar",
        "P1 (open): Make it.",
        "P2 (open): Test it.",
    ]
    assert scope_ledger_line(snapshot.state.scope) == "1 of 2 items completed; of 1 added 0"
    assert [todo.items for todo in snapshot.state.phase.todos] == [["P1"], ["P2"]]
    assert snapshot.state.phase.covers == ["S2", "A1", "P1", "P2"]


def test_an_agent_with_commands_ends_its_job_within_its_list(tmp_path: Path) -> None:
    snapshot = Standing.begin(tmp_path, agent="coder", kind="tactical").open()
    begin_configured_list(snapshot, 1)
    phase = snapshot.state.phase
    assert phase.ends_job
    assert phase.todos[-1].content.startswith("Call job_complete")
    assert [todo.id for todo in phase.todos] == [1, 2, 3, 4]
    # It is no step of the plan.
    assert "job_complete" not in snapshot.read_text("plan.md")
    assert len(phase.covers) == 3
