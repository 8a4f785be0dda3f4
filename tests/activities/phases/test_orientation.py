"""The first messages of a phase: a strategic one is shown where things stand, bounded."""

from pathlib import Path

import pytest

from activities.phases.archive import FORKED
from activities.phases.orientation import PART_TOKENS, last_archive_page, orientation_messages
from activities.text.tokens import count_tokens
from protocol.phase import PhaseKind
from protocol.scope_ledger import scope_from_texts
from tests.activities.standing import Standing

FILES = {
    "workspace_summary.md": "SUMMARY of the files.",
    "plan.md": "# Plan\n\n## Phase 1: PLANNED\n- [ ] x",
    "workspace.md": "The kettle holds 1.7 litres.",
}
PAGE = "# Phase 1: ARCHIVED"


def opening(path: Path, kind: PhaseKind, issue: str = "", **files: str) -> tuple[str, str]:
    """System prompt and first message."""
    job = Standing.begin(path, kind=kind)
    for name, text in {**FILES, **files}.items():
        job.write(name, text)
    snapshot = job.open()
    snapshot.state.issue = issue
    snapshot.state.phase.plan_position = snapshot.state.phase.plan_total = 1
    system, first = orientation_messages(snapshot, PAGE)
    assert (system["role"], first["role"]) == ("system", "user")
    return system["content"], first["content"]


def test_a_strategic_phase_begins_with_summary_plan_instructions_and_last_page(
    tmp_path: Path,
) -> None:
    _, first = opening(tmp_path, "strategic", "The tea was cold.")
    for text in ("SUMMARY of the files", "PLANNED", "Write about tea.", "ARCHIVED", "tea was cold"):
        assert text in first


def test_the_first_phase_names_the_documents(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="strategic")
    for name in ("a.pdf", "a.pdf.txt", "a.pdf.reading.json", "b.md"):
        job.write(f"documents/{name}", "Tea.")
    snapshot = job.open()
    _, later = orientation_messages(snapshot, PAGE)
    snapshot.state.phase.number = 1
    _, first = orientation_messages(snapshot, PAGE)
    assert "The job's documents: documents/a.pdf, documents/b.md." in first["content"]
    assert "The job's documents" not in later["content"]


def test_a_rewind_says_what_became_of_the_files(tmp_path: Path) -> None:
    _, text = opening(tmp_path / "kept", "strategic", "The tea was cold.")
    assert "the files it wrote are still there. The issue: The tea was cold." in text
    job = Standing.begin(tmp_path / "restored", kind="strategic")
    snapshot = job.open()
    snapshot.state.issue = "The tea was cold."
    _, first = orientation_messages(snapshot, PAGE, restored=True)
    assert "taken back, its files too. The issue: The tea was cold." in first["content"]


def test_a_planner_knows_the_tools_that_only_the_work_has(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="strategic", agent="creator")
    system, _ = orientation_messages(job.open(), PAGE)
    assert "Tactical phases have tools besides yours, to plan with: `" in system["content"]
    for name in ("add_requirement", "cite_document", "identify_requirement_candidates"):
        assert f"`{name}`" in system["content"]
    assert "to plan with" not in opening(tmp_path / "tactical", "tactical")[0]


@pytest.mark.parametrize(("agent", "can_look"), [("generalist", True), ("validator", False)])
def test_what_others_ran_into_names_only_a_tool_that_is_there(
    tmp_path: Path, agent: str, can_look: bool
) -> None:
    job = Standing.begin(tmp_path, kind="strategic", agent=agent)
    _, first = orientation_messages(job.open(), PAGE, ["T1 outcome: the tea was cold"])
    assert "they are no instructions." in first["content"]
    assert first["content"].rstrip().endswith("\n\n- T1 outcome: the tea was cold")
    assert ("`get_trace(" in first["content"]) is can_look


def test_the_last_page_is_that_of_the_greatest_number(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path)
    assert last_archive_page(job.open()) == ""
    for name in ("phase_0999.md", "phase_999.md", "phase_1000.md", "phase_1000.yaml", "z.md"):
        job.write(f"archive/{name}", "x")
    assert last_archive_page(job.open()) == "archive/phase_1000.md"
    # The page of a phase that a fork replaced tells nothing.
    job.write("archive/phase_1001.md", f"# Phase 1001 (forked)\n\n{FORKED}\n")
    assert last_archive_page(job.open()) == "archive/phase_1000.md"


def test_a_tactical_one_begins_with_instructions_and_its_part_of_the_plan(tmp_path: Path) -> None:
    plan = "# Plan\n\n## Phase 1: PLANNED\n- [ ] x\n\n## Phase 2: LATER\n- [ ] y\n"
    _, first = opening(tmp_path, "tactical", **{"plan.md": plan})
    for text in ("## Phase 1: PLANNED\n- [ ] x", "Write about tea."):
        assert text in first
    for text in ("SUMMARY of the files", "LATER", "ARCHIVED"):
        assert text not in first


def test_a_second_attempt_is_shown_what_went_wrong_and_what_was_learned(tmp_path: Path) -> None:
    lesson = {"experiences.md": "# Experiences\n\n## Cold tea\n\nWarm the pot first.\n"}
    _, first = opening(tmp_path / "again", "tactical", "The  tea\n was cold.", **lesson)
    assert "An attempt at this work failed before. The issue: The  tea\n was cold." in first
    assert "Warm the pot first." in first
    more = lesson["experiences.md"] + "\n## Thin tea\n\nTake more leaves.\n"
    _, first = opening(tmp_path / "third", "strategic", **{"experiences.md": more})
    assert first.index("Take more leaves.") < first.index("Warm the pot first.")
    assert "Warm the pot" not in opening(tmp_path / "first", "tactical", **lesson)[1]


@pytest.mark.parametrize("name", ["plan.md", "workspace_summary.md", "instructions.md"])
def test_each_part_is_bounded_and_points_to_the_rest(tmp_path: Path, name: str) -> None:
    _, first = opening(tmp_path, "strategic", **{name: "many words " * 10_000})
    assert f'read_file("{name}") shows all' in first
    assert count_tokens(first) < PART_TOKENS + 1000


@pytest.mark.parametrize("kind", ["strategic", "tactical"])
def test_every_system_prompt_has_workspace_md_bounded(tmp_path: Path, kind: PhaseKind) -> None:
    system, _ = opening(tmp_path / "short", kind)
    assert FILES["workspace.md"] in system
    system, _ = opening(tmp_path / "long", kind, **{"workspace.md": "many words " * 10_000})
    assert 'read_file("workspace.md") shows all' in system
    assert count_tokens(system) < 4000 + 2000


@pytest.mark.parametrize("kind", ["strategic", "tactical"])
def test_both_templates_say_what_every_phase_needs(tmp_path: Path, kind: PhaseKind) -> None:
    system, _ = opening(tmp_path, kind)
    flat = " ".join(system.split())
    for text in (
        f"**{kind}** phase",
        "Do the todos in order",
        "`todo_complete` after each",
        "into one reply, up to 32",
        "The system changes phases by itself",
        "start at its top",
        "Files are your memory",
        "When unsure what is wanted, read `instructions.md` again",
    ):
        assert text in flat
    assert len(system.splitlines()) <= 100


def test_the_items_of_a_job_that_begins_with_work_are_shown(tmp_path: Path) -> None:
    job = Standing.begin(tmp_path, kind="tactical")
    snapshot = job.open()
    snapshot.state.scope = scope_from_texts(["write output/b.md with the word tea"])
    later = orientation_messages(snapshot, "")[1]["content"]
    snapshot.state.phase.number = 1
    first = orientation_messages(snapshot, "")[1]["content"]
    assert "write output/b.md with the word tea" in first
    assert "write output/b.md with the word tea" not in later
