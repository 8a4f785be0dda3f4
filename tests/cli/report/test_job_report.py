"""A report computed from made-up checkpoints, without a server."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from activities.checkpoints import Checkpoints, Root
from activities.job.snapshot import Snapshot
from cli.jobs.job_view import JobView
from cli.report import checkpoint_facts
from cli.report.history import StatusChange
from cli.report.html_page import render_html_page
from cli.report.job_report import (
    BROKEN,
    CUT,
    FORGOTTEN,
    NO_WORKER,
    NOTHING_DONE,
    compose_job_report,
    unexplained_open_work,
)
from cli.report.report_content import Report
from cli.report.sanitize import sanitize_line
from cli.report.tally import Tally
from config.agent_files import load_agent
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.scope_ledger import ScopeItem
from protocol.status import JobStatus
from protocol.todo_list import Todo
from tests.cli.report.samples import NOON, at

KEY = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
OTHER_KEY = "AKIAQ3EGRT7YHJ2KLM4N"
"""Recognized by its capitals."""
START = int(NOON.timestamp())
PLANS = (
    "",
    f"## Phase 1: Brew\n- [ ] boil {OTHER_KEY}\n- [ ] pour\n",
    "## Phase 1: Brew\n- [ ] pour\n",
    f"## Phase 1: Brew\n- [ ] boil {OTHER_KEY}\n- [ ] pour\n",
)


@pytest.fixture
def facts(tmp_path: Path) -> checkpoint_facts.CheckpointFacts:
    """Return a job with one strategic phase after the other, a plan that grows and shrinks, and the
    key everywhere.
    """
    store = Checkpoints.create(Root.open(tmp_path / "root", create=True), "made-up")
    scope = [ScopeItem(id="S1", text=f"Cover {KEY}"), ScopeItem(id="S2", text="Cover milk")]
    snapshot = None
    for number, plan in enumerate(PLANS, 1):
        phase = Phase(
            number=number,
            kind="strategic",
            purpose="bootstrap" if number == 1 else "rewind",
            name=f"Think of {KEY}",
            since=10 * number,
            todos=[Todo(id=1, content="Think", done=True), Todo(id=2, content="Again")],
        )
        state = JobState(step=10 * number, scope=scope, phase=phase)
        if snapshot is None:
            snapshot = Snapshot.start(store, load_agent("generalist"), state)
        snapshot.state = state
        snapshot.files = snapshot.files.write("plan.md", plan.encode())
        snapshot.files = snapshot.files.write(
            f"archive/phase_{number:03d}.yaml",
            f"outcome: rewound\nissue: not {KEY}\ntodos: [{{status: completed}}]\n".encode(),
        )
        commit = snapshot.save(f"phase {number} begins: on", START + 10 * number)
        store.tag(f"phase/{number:04d}", commit)
    assert snapshot
    snapshot.files = snapshot.files.write(f"output/{KEY}.md", b"tea").write("output/none.md", b"")
    return checkpoint_facts.collect_checkpoint_facts(
        store, snapshot.save("phase 4 · todo 2 · reply: text", START + 50)
    )


def seen(**status: Any) -> JobView:
    fields = {"title": f"Tea {KEY}", "agent": "generalist", "model": "rehearsal", "step": 40}
    known = JobStatus.model_validate(fields | status)
    return JobView("made-up", known, closed=False, started=at(0), run_id="r")


def composed(facts: checkpoint_facts.CheckpointFacts, view: JobView | None, **more: Any) -> Report:
    tally = Tally()
    for change in ((5, "waiting", "paused"), (10, "running", ""), (20, "waiting", KEY)):
        tally.add_event(StatusChange(at(change[0]), *change[1:]))
    event = {"what_happened": f"took {KEY}"}
    traces = [{"type": "decision", "time": "2026-03-01 09:00", "event": event}]
    options: dict[str, Any] = {"now": at(60), "complete": True} | more
    return compose_job_report("made-up", view, tally if view else None, facts, traces, **options)


def test_of_a_fork_only_its_own_phases_are_told(tmp_path: Path) -> None:
    store = Checkpoints.create(Root.open(tmp_path / "root", create=True), "forked")
    snapshot = None
    for number, story in enumerate(
        ("phase 1 begins: on", "forked from tea · phase 2 begins: on"), 1
    ):
        phase = Phase(number=number, kind="strategic", purpose="fork", name="On", todos=[])
        state = JobState(phase=phase)
        snapshot = snapshot or Snapshot.start(store, load_agent("generalist"), state)
        snapshot.state = state
        store.tag(f"phase/{number:04d}", snapshot.save(story, START + number))
        commit = snapshot.save(f"phase {number} · reply: text", START + number)
    fork_facts = checkpoint_facts.collect_checkpoint_facts(store, commit)
    assert ([began.phase.number for began in fork_facts.phase_starts], fork_facts.replies) == (
        [2],
        1,
    )
    assert fork_facts.first_at == START + 2


def test_no_credential_gets_into_a_report(facts: checkpoint_facts.CheckpointFacts) -> None:
    waiting = {"reason": "budget", "message": f"No {KEY}", "remedy": f"Set {KEY}"}
    result = {
        "status": "completed",
        "summary": f"Used {KEY}",
        "notes": KEY,
        "unresolved": [f"S2: no {KEY}"],
        "deliverables": [f"output/{KEY}.md"],
        "confidence": 0.9,
    }
    status = {
        "waiting": waiting,
        "notices": [{"text": f"saw {KEY}"}],
        "error": KEY,
        "result": result,
    }
    job_report = composed(facts, seen(**status))
    for shown in (job_report.model_dump_json(), render_html_page(job_report)):
        assert "a1b2" not in shown.lower()
        assert "q3egrt" not in shown.lower()
        assert "[redacted]" in shown


def test_a_waiting_job_says_why_and_what_to_do(facts: checkpoint_facts.CheckpointFacts) -> None:
    waiting = {"reason": "budget", "message": "No room.", "remedy": "Raise it."}
    job_report = composed(facts, seen(waiting=waiting, status="waiting", refusals=2))
    assert job_report.status.waiting
    assert job_report.status.waiting.remedy == "Raise it."
    assert job_report.figures.waiting_seconds == 45
    [row] = job_report.refusals
    assert (row.kind, row.count) == ("signal", 2)
    assert "Raise it." in render_html_page(job_report)
    sizes = {one.path: (one.bytes, one.problem) for one in job_report.deliverables}
    assert sizes["output/none.md"] == (0, "is empty")


def test_plans_and_phases_are_read_from_the_checkpoints(
    facts: checkpoint_facts.CheckpointFacts,
) -> None:
    job_report = composed(facts, seen())
    patterns = {pattern.name: pattern for pattern in job_report.patterns}
    assert patterns["planning_only"].details == ["phases 1 to 4: bootstrap, rewind, rewind, rewind"]
    assert patterns["swinging_plans"].details == [
        f"gone at phase 3, back at 4: {sanitize_line(f'boil {OTHER_KEY}')}",
    ]
    assert [phase.started for phase in job_report.phases] == [at(10), at(20), at(30), at(40)]
    assert [(phase.todos_done, phase.todos) for phase in job_report.phases] == [(1, 1)] * 4


def test_what_was_accepted_with_something_open_is_told(
    facts: checkpoint_facts.CheckpointFacts,
) -> None:
    result = {"status": "completed", "deliverables": ["output/tea.md"], "unresolved": []}
    job_report = composed(facts, seen(status="completed", result=result))
    assert job_report.figures.completions_let_through == 1
    assert job_report.patterns[0].name == "premature_completion"
    assert job_report.patterns[0].details == [
        "Phase 1: Brew is open in plan.md",
        f"item S1 is open: {sanitize_line(f'Cover {KEY}')}",
        "item S2 is open: Cover milk",
        "output/tea.md: does not exist",
        NOTHING_DONE,
    ]
    unresolved = ["Phase 1: no water came.", "S1: no water came.", "S2: the milk was sour."]
    result = {"status": "completed", "unresolved": unresolved}
    status, worked = seen(status="completed", result=result), replace(facts, has_work=True)
    assert composed(worked, status).patterns[0].details == ["output/none.md: is empty"]


def test_the_list_that_job_complete_ends_is_not_called_open(
    facts: checkpoint_facts.CheckpointFacts,
) -> None:
    state = facts.state.model_copy(deep=True)
    state.phase = state.phase.model_copy(update={"ends_job": True, "plan_position": 1})
    state.scope[1].source = "plan"
    plan = [("Phase 1", "Brew"), ("Phase 2", "Pour")]
    ended = replace(facts, state=state, open_plan_phases=plan, has_work=True)
    assert unexplained_open_work(ended, None)[:2] == [
        "Phase 2: Pour is open in plan.md",
        f"item S1 is open: Cover {KEY}",
    ]
    assert "item S2 is open: Cover milk" not in unexplained_open_work(ended, None)


def test_what_could_not_be_read_is_told(facts: checkpoint_facts.CheckpointFacts) -> None:
    assert composed(facts, seen()).remarks == []
    assert composed(facts, seen(), complete=False).remarks == [CUT]
    assert composed(facts, None).remarks == [FORGOTTEN]
    assert composed(replace(facts, breaks_off=True), seen()).remarks == [BROKEN]
    asleep = seen()
    asleep.status.live = False
    assert composed(facts, asleep).remarks == [NO_WORKER]
