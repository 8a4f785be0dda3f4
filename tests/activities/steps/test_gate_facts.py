"""Facts for the completion gate: what is explained, what is missing."""

import json
from pathlib import Path

import pytest

from activities.job.deliverables import explained_items, is_named_unresolved
from activities.phases.predefined_todos import begin_configured_list
from activities.steps.gate_facts import gather_gate_facts
from config.agent_files import load_agent
from protocol.endings import GateFacts
from protocol.handoffs import Handoff, HandoffInputs, ProjectLink
from protocol.scope_ledger import scope_from_texts, sync_plan_steps
from tests.activities.standing import Standing

PLAN = b"""\
# Plan

## Phase 1: Boil
- [x] boil

## Phase 2: Brew
- [ ] brew

## Phase 3: Pour
- [ ] pour
"""


def completion(job: Standing, **arguments: object) -> GateFacts:
    claim = {"summary": "s", "deliverables": [], "confidence": 0.5, **arguments}
    job.reply(("job_complete", json.dumps(claim)))
    return gather_gate_facts(job.open(), 0)


@pytest.fixture
def job(tmp_path: Path) -> Standing:
    job = Standing.begin(tmp_path)
    job.put(lambda files: files.write("plan.md", PLAN))
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["tea", "water", "cups"])
    snapshot.state.scope[2].status = "completed"
    job.commit = snapshot.save("scope", 1)
    return job


def test_a_plan_is_ahead_if_boxes_stay_open_when_the_list_is_done(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    snapshot = job.open()
    snapshot.pin_config(load_agent("coder"))
    begin_configured_list(snapshot, 1)
    for todo in snapshot.state.phase.todos[:-1]:
        snapshot.state.complete_todo(todo.id)
    assert not gather_gate_facts(snapshot, None).plan_ahead
    plan = snapshot.read_text("plan.md") + "\n## Phase 2: Pour\n- [ ] pour\n"
    snapshot.files = snapshot.files.write("plan.md", plan.encode())
    assert gather_gate_facts(snapshot, None).plan_ahead


def test_what_a_project_is_handed_counts_as_changed_whatever_the_deliverables(
    job: Standing,
) -> None:
    """A coder that fixes its tests after a refusal does not repeat itself."""
    handoff = Handoff(
        id="brew-coder-1",
        from_agent="a",
        to_agent="coder",
        task="Brew.",
        inputs=HandoffInputs(commit="a" * 40),
    )
    link = ProjectLink(id="tea", folder="repo", summary_tokens=1000, handoff=handoff)
    marks = []
    for text in (b"1", b"2", b"2"):
        snapshot = job.open()
        snapshot.link = link
        snapshot.files = snapshot.files.write("repo/tests/test_tea.py", text)
        job.commit = snapshot.save("work", 1)
        marks.append(completion(job, deliverables=["plan.md"]).deliverables_fingerprint)
    assert marks[0] != marks[1] == marks[2]


def test_open_items_and_phases_are_unexplained_until_an_entry_names_them(job: Standing) -> None:
    facts = completion(job)
    assert facts.unexplained_items == ["S1", "S2"]
    assert facts.unexplained_phases == ["Phase 2: Brew", "Phase 3: Pour"]
    entries = ["S1: the shop is closed today", "phase 3 - all cups are broken"]
    facts = completion(job, unresolved=entries)
    assert facts.unexplained_items == ["S2"]
    assert facts.unexplained_phases == ["Phase 2: Brew"]
    assert facts.plan_open == 2
    assert facts.plan_steps == 3
    assert facts.plan_boxes == ["brew", "pour"]
    snapshot = job.open()
    snapshot.state.scope += sync_plan_steps([], [(1, "boil"), (2, "heat the pot first")])
    job.commit = snapshot.save("done", 1)
    facts = completion(job, unresolved=[*entries, "S2: see above"])
    # The second step is no longer in the plan, and an entry has to give it a reason.
    assert facts.vanished == ["P2"]
    assert facts.unexplained_items == ["S2", "P2"]


def test_an_entry_explains_the_item_that_it_names_first() -> None:
    items = scope_from_texts(["tea", "water", "cups"])
    assert explained_items(items, ["S1, S2 and S3: nothing is in stock"]) == {"S1"}
    assert explained_items(items, ["S1: done elsewhere", "S3 is broken, see S1"]) == {"S3"}


@pytest.mark.parametrize(
    "entry",
    ["S1", "S1 tea", "S1: open", "S12 could not be found", "tea is out of stock", "xS1 y z"],
)
def test_an_entry_without_the_id_or_without_a_reason_explains_nothing(entry: str) -> None:
    assert not is_named_unresolved("S1", "tea", [entry])
    assert is_named_unresolved("S1", "tea", [entry, "S1 tea: none in stock"])
    assert not is_named_unresolved("S1", "describe green tea", ["S1: describe green tea"])


@pytest.mark.parametrize("confidence", [-0.1, 1.1, "high", None])
def test_confidence_is_between_0_and_1(job: Standing, confidence: object) -> None:
    assert "confidence" in str(completion(job, confidence=confidence).arguments_error)
    assert completion(job, confidence=1).arguments_error is None


def test_deliverables_exist_and_are_not_empty(job: Standing) -> None:
    job.write("output/empty.md", "")
    job.write("output/tea.md", "tea")
    job.write("drafts/later/empty.md", "")
    names = ["none.md", "empty.md", "tea.md"]
    paths = [*(f"output/{name}" for name in names), "output", "archive", "drafts"]
    assert completion(job, deliverables=paths).missing_deliverables == [
        "output/none.md: does not exist",
        "output/empty.md: is empty",
        "archive: is an empty folder",
        "drafts: holds nothing but empty files",
    ]
