"""What a report calls proved: looked up by the system, and not undone later."""

from pathlib import Path

import pytest

from activities.checkpoints import Checkpoints, Root
from activities.job.snapshot import Snapshot
from cli.report import checkpoint_facts
from cli.report.checkpoint_facts import CheckpointFacts
from cli.report.history import ActivityResult
from cli.report.job_report import JUDGE, REVIEW, list_proofs
from cli.report.tally import Tally
from config.agent_files import load_agent
from config.schema.work_checks import Verifier
from protocol.job_state import JobState
from protocol.phase import Phase
from protocol.todo_list import DoneWhen, Todo
from tests.cli.report.samples import at

PAGES = {
    1: "outcome: completed\ntodos: [{id: 1, status: completed}]\n",
    2: "undone: true\noutcome: rewound\ntodos: [{id: 1, status: completed}]\n",
    3: "outcome: completed\ntodos: [{id: 1, status: completed}, {id: 2, status: pending}]\n",
}


@pytest.fixture
def facts(tmp_path: Path) -> CheckpointFacts:
    """Return the facts of a plan, a phase that a rewind undid, a phase of work, and the end."""
    store = Checkpoints.create(Root.open(tmp_path / "root", create=True), "proved")
    snapshot = None
    for number in range(1, 5):
        todos = [
            Todo(id=1, content="Brew", done_when=DoneWhen(file_exists="output/tea.md")),
            Todo(id=2, content="Pour", done_when=DoneWhen(command="make taste")),
        ]
        kind = "tactical" if number in (2, 3) else "strategic"
        purpose = "work" if kind == "tactical" else "transition"
        plain = [Todo(id=1, content="Think")]
        phase = Phase(
            number=number,
            kind=kind,
            purpose=purpose,
            name="Tea",
            todos=todos if kind == "tactical" else plain,
        )
        state = JobState(phase=phase)
        snapshot = snapshot or Snapshot.start(store, load_agent("generalist"), state)
        snapshot.state = state
        commit = snapshot.save(f"phase {number} begins: on", 1_800_000_000 + number)
        store.tag(f"phase/{number:04d}", commit)
        if number in PAGES:
            path = f"archive/phase_{number:03d}.yaml"
            snapshot.files = snapshot.files.write(path, PAGES[number].encode())
    assert snapshot
    job_facts = checkpoint_facts.collect_checkpoint_facts(
        store, snapshot.save("phase 4 · job completed", 0)
    )
    job_facts.verifiers = [Verifier(name="tests", command="make test")]
    return job_facts


def tally(*ends: tuple[str, int, dict[str, object]]) -> Tally:
    counted = Tally()
    for seconds, (name, phase, result) in enumerate(ends):
        counted.add_event(ActivityResult(at(seconds), name, phase, dict(result)))
    return counted


def test_done_when_of_todos_that_are_done_is_evidence_but_not_of_phases_undone(
    facts: CheckpointFacts,
) -> None:
    shown = [(each.phase, each.claim, each.held, each.by) for each in list_proofs(facts, None, "")]
    assert shown == [(3, "todo 1: Brew", "output/tea.md exists", "done_when")]


def test_verifiers_judge_and_review_are_evidence_where_they_said_yes(
    facts: CheckpointFacts,
) -> None:
    job_tally = tally(
        ("judge_ending", 3, {"refusal": "It failed.", "guard": "tests"}),
        ("judge_ending", 3, {"refusal": ""}),
        ("judge_phase", 3, {"refusal": ""}),
        ("judge_ending", 4, {"refusal": ""}),
        ("review_job", 4, {"verdict": "sent back"}),
        ("review_job", 4, {"verdict": "accepted"}),
    )
    shown = [
        (each.phase, each.claim, each.held) for each in list_proofs(facts, job_tally, "completed")
    ]
    assert shown[1:] == [
        (3, "phase 3 is done", "tests: `make test` ended with 0"),
        (3, "phase 3 is done", JUDGE),
        (4, "the job is complete", "tests: `make test` ended with 0"),
        (4, "the job is complete", REVIEW),
    ]


def test_what_a_person_let_through_or_sent_back_proves_nothing(facts: CheckpointFacts) -> None:
    job_tally = tally(
        ("judge_ending", 3, {"refusal": "", "bypassed_guard": "tests"}),
        ("judge_ending", 4, {"refusal": "", "asks": "May it end?"}),
        ("review_job", 4, {"verdict": "sent back"}),
    )
    assert [each.by for each in list_proofs(facts, job_tally, "running")] == ["done_when"]
