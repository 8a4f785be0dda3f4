"""Archive pages: what a phase set out to do and what came of it."""

from pathlib import Path

import pytest
import yaml

from activities.job.snapshot import Snapshot
from activities.phases.archive import (
    MAX_SUMMARY,
    UNDONE,
    Outcome,
    archive_page,
    archive_phase,
    archive_prompt,
    with_undone_archive_pages,
)
from activities.text.tokens import count_tokens
from tests.activities.standing import Standing
from workflows.rules.reservations import SUMMARY_TOKENS


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    opened = Standing.begin(tmp_path).open()
    opened.state.complete_todo(1, "made\na.md")
    return opened


@pytest.mark.parametrize(
    ("outcome", "statuses"),
    [
        ("completed", ["completed", "pending", "pending"]),
        ("rewound", ["completed", "interrupted", "pending"]),
        ("closed", ["completed", "pending", "pending"]),
    ],
)
def test_a_page_for_programs(snapshot: Snapshot, outcome: Outcome, statuses: list[str]) -> None:
    data = yaml.safe_load(archive_page(snapshot, outcome, "it fails", "").data)
    assert [todo["status"] for todo in data["todos"]] == statuses
    assert data["todos"][0]["notes"] == "made\na.md"
    assert (data["number"], data["outcome"], data["issue"]) == (2, outcome, "it fails")


def test_a_page_for_people(snapshot: Snapshot) -> None:
    text = archive_page(snapshot, "rewound", "it fails", " All went well. ").text
    for words in (
        "# Phase 2: Look (strategic, rewound)",
        "## Issue\n\nit fails",
        "- [x] 1. Step 1.",
    ):
        assert words in text
    assert "Notes: made a.md" in text
    assert text.endswith("## Summary\n\nAll went well.\n")


@pytest.mark.parametrize("text", ["tea ", "茶を飲む。", "🫖🍵", "7f3a9c0e "])
def test_what_is_sent_for_a_summary_is_what_the_limits_reserve(
    snapshot: Snapshot, text: str
) -> None:
    message = {"role": "user", "content": text * 1000}
    snapshot.begin_conversation({"role": "system", "content": "s"}, *[message] * 200)
    prompt = archive_prompt(snapshot)
    assert 10_000 < count_tokens(prompt) < SUMMARY_TOKENS
    assert prompt.count("[TRUNCATED the middle of the phase]") == 1


def test_without_a_summary_the_notes_take_its_place(snapshot: Snapshot) -> None:
    page = archive_page(snapshot, "completed", "", " \n").text
    assert page.endswith("## Summary\n\nThe notes on the todos above.\n")
    # Not repeated.
    assert page.count("made a.md") == 1
    snapshot.state.phase.todos[0].notes = ""
    assert "No notes were made." in archive_page(snapshot, "completed", "", "").text


def test_a_summary_is_bounded(snapshot: Snapshot) -> None:
    text = archive_page(snapshot, "completed", "", "x" * 100_000).text
    assert text.count("x") <= MAX_SUMMARY + 10


def test_pages_of_what_is_undone_stay_and_are_marked_once(snapshot: Snapshot) -> None:
    page = archive_page(snapshot, "completed", "", "done")
    base = snapshot.files
    present = archive_phase(base, snapshot.state.phase, page)
    restored = with_undone_archive_pages(base, present, 2)
    text = restored.read("archive/phase_002.md").decode()
    assert text.startswith("# Phase 2: Look (strategic, completed)\n\n" + UNDONE)
    assert yaml.safe_load(restored.read("archive/phase_002.yaml"))["undone"] is True
    assert with_undone_archive_pages(base, restored, 2) == restored


def test_pages_of_phases_before_the_one_gone_back_to_are_not_undone(snapshot: Snapshot) -> None:
    page = archive_page(snapshot, "completed", "", "done")
    present = archive_phase(snapshot.files, snapshot.state.phase, page)
    assert with_undone_archive_pages(present, present, 3) == present


def test_the_page_takes_the_place_of_the_list_its_phase_started_with(snapshot: Snapshot) -> None:
    started = snapshot.files.write("archive/phase_002.yaml", b"phase: Look\n")
    page = archive_page(snapshot, "rewound", "it fails", "")
    present = archive_phase(started, snapshot.state.phase, page)
    restored = yaml.safe_load(
        with_undone_archive_pages(started, present, 2).read("archive/phase_002.yaml")
    )
    assert (restored["undone"], restored["issue"]) == (True, "it fails")
