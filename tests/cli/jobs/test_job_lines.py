"""What a person sees, computed from the status alone."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from cli import output
from cli.jobs import job_lines, job_outcome, job_sheet, live_view
from cli.jobs.job_memo import status_from_memo
from cli.jobs.job_view import JobView
from cli.output import escape_controls, result_console

STATUS = {
    "job_id": "creator-1",
    "title": "Read the [bold]law",
    "agent": "creator",
    "status": "running",
    "phase": {"number": 3, "kind": "tactical", "name": "Extraction"},
    "plan": {"position": 2, "total": 4},
    "todos": [
        {"id": 1, "content": "First", "status": "completed"},
        {"id": 2, "content": "Second", "status": "current"},
        {"id": 3, "content": "Third", "status": "open"},
    ],
}


def painted(status, waiting=None, silence=""):
    out = StringIO()
    console = Console(file=out, width=100, force_terminal=False)
    events = [(datetime(2026, 1, 1, tzinfo=UTC), "phase 3 · todo 2 · write_file [red]x")]
    console.print(
        live_view.render_live_view(
            status, waiting, running_for="0:00:05", events=events, pending=[], silence=silence
        )
    )
    return out.getvalue()


def test_each_todo_has_the_box_of_its_status():
    assert [box for box, _ in job_lines.job_todo_lines(STATUS)] == ["☑", "▶", "☐"]
    assert job_lines.job_todo_progress(STATUS) == (1, 3)


def test_a_todo_that_nobody_did_reads_not_needed_and_is_no_progress():
    todos = [
        {"id": 1, "content": "First", "status": "completed"},
        {"id": 2, "content": "Second", "status": "not needed"},
    ]
    status = {**STATUS, "todos": todos}
    assert job_lines.job_todo_lines(status)[1] == ("·", "2. Second (not needed)")
    assert job_lines.job_todo_progress(status) == (1, 1)


def test_the_line_names_state_phase_progress_and_step():
    assert job_lines.job_status_line(STATUS, None) == (
        "running · phase 3 · tactical · Extraction · plan 2 of 4 · 1/3 · 2. Second"
    )


def test_the_screen_shows_texts_as_they_are():
    shown = painted(STATUS)
    assert "Read the [bold]law" in shown
    assert "write_file [red]x" in shown
    assert "▶ 2. Second" in shown
    assert "1/3" in shown


def test_cost_shows_when_there_is_some_and_limits_when_there_are():
    usage = {"model_calls": 3, "prompt_tokens": 1200}
    assert (
        job_lines.job_usage_line({"usage": usage}) == "3 model calls · 0 tool calls · 1,200 tokens"
    )
    line = job_lines.job_usage_line(
        {"usage": {**usage, "cached_tokens": 1000, "written_tokens": 50}}
    )
    assert line.endswith("1,200 tokens (cache: 1,000 read, 50 written)")
    assert job_lines.job_usage_line({"usage": usage | {"cost": 0.01234}}).endswith(
        "tokens · cost 0.0123"
    )
    limits = {
        "job": {"cost": {"limit": 2.0, "spent": 1.97}},
        "phase": {"tokens": {"limit": 1_000_000, "spent": 12_345}},
    }
    line = "limits: job cost 1.97 of 2 · phase tokens 12,345 of 1,000,000"
    assert job_lines.job_limits_line({"limits": limits}) == line
    assert line in painted(STATUS | {"limits": limits})
    assert (
        job_lines.job_limits_line({})
        == job_lines.job_limits_line({"limits": {"job": {}, "phase": {}}})
        == ""
    )


def test_waiting_comes_with_the_remedy():
    for message in ("The key was refused.", "The key was refused"):
        waiting = {"reason": "credentials", "message": message, "remedy": "Set one."}
        assert "waiting (credentials): The key was refused. Set one." in painted(STATUS, waiting)


def test_what_to_do_is_whole_on_a_narrow_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    remedy = "Set the key in the environment of the worker, restart it and resume."
    waiting = {"reason": "credentials", "message": "The key was refused.", "remedy": remedy}
    screen = result_console()
    with screen.capture() as shown:
        picture = live_view.render_live_view(
            STATUS, waiting, running_for="0:00:05", events=[], pending=[], silence=""
        )
        screen.print(picture)
    lines = [line.strip("│ ") for line in shown.get().splitlines()]
    assert remedy in " ".join(lines)
    assert max(map(len, shown.get().splitlines())) == 40
    # The last lines are cut off on a terminal with few lines.
    assert shown.get().index("resume.") < shown.get().index("1. First")


def test_an_empty_status_is_shown_too():
    assert job_lines.job_status_line({}, None) == "running"
    assert "no worker answers" in painted({}, silence="no worker answers")
    assert "None" not in painted({"agent": None, "model": None})
    assert (
        job_outcome.job_outcome_lines({"job_id": "x", "status": "failed", "error": "why"})[0]
        == "x failed: why"
    )


@pytest.mark.parametrize(
    ("content", "shown"),
    [({"grams": 3}, '{"grams": 3}'), (None, "30 bytes"), ("tea" * 1000, "30 bytes")],
)
def test_typed_result_is_shown_unless_it_is_long(content: Any, shown: str) -> None:
    typed = {"path": "output/result.json", "bytes": 30, "content": content}
    status = {"job_id": "x", "status": "completed", "result": {"summary": "Done.", "result": typed}}
    assert f"result output/result.json: {shown}" in job_outcome.job_outcome_lines(status)


def test_what_is_only_claimed_is_named() -> None:
    row = {"id": "B1", "item": "B1", "statement": "Read it.", "status": "completed"}
    row |= {"verdict": "met", "claim": "read tea.md"}
    lines = job_outcome.job_outcome_lines({"status": "completed", "result": {"contract": [row]}})
    assert lines[-2:] == ["claimed only:", "  B1: read tea.md"]


def test_elapsed_never_goes_below_zero():
    now = datetime(2026, 1, 1, tzinfo=UTC)
    view = JobView("x", {}, live=True, closed=False, started=now, run_id="r")
    assert view.elapsed_text(now + timedelta(hours=1, seconds=2)) == "1:00:02"
    assert view.elapsed_text(now - timedelta(seconds=3)) == "0:00:00"


def test_control_characters_do_not_reach_the_terminal():
    assert escape_controls("a\x1b[2Jb\nc") == "a\\x1b[2Jb\nc"


def test_columns_are_as_wide_as_they_must_be():
    rows: list[dict[str, Any]] = [
        {"job_id": "creator-with-a-long-id", "title": None},
        {"job_id": "x", "title": "a\nb"},
    ]
    assert output.render_text_table(rows, ("job_id", "title")) == [
        "JOB_ID                  TITLE",
        "creator-with-a-long-id  -",
        "x                       a b",
    ]


def test_a_wait_shows_until_when():
    waiting = {**STATUS, "waits_until": "2026-03-01T09:00:00Z"}
    sentence = "the agent waits until 2026-03-01T09:00:00Z"
    assert sentence in painted(waiting)
    assert sentence in job_sheet.render_job_sheet(waiting, None)
    assert "waits until" not in painted(STATUS)


def test_of_a_closed_job_the_remote_is_told_as_it_was_then():
    remote = {"url": "s3://checks", "behind": "it cannot be reached"}
    running = {"status": "running", "remote": remote}
    assert job_sheet.render_job_sheet(running, None)[-1] == (
        "the remote s3://checks lacks checkpoints: it cannot be reached"
    )
    ended = {"status": "completed", "remote": remote, "result": {"summary": "Done."}}
    assert (
        "when the job ended, the remote s3://checks lacked checkpoints"
        in (job_sheet.render_job_sheet(ended, None)[-1])
    )


def test_a_repository_that_hosts_have_copies_of_is_named_with_its_host():
    status = {"status": "running", "repository": "/srv/tea.git", "remote": {"url": "s3://checks"}}
    assert job_sheet.render_job_sheet(status, None)[-1] == (
        "git clone /srv/tea.git (on the host where it began; each host that worked on it has "
        ".longhaul/projects/tea.git in its root)"
    )


def test_a_state_on_record_names_the_phase_once():
    state = "phase 1 (tactical) Mend the bug, 2/3 todos"
    memo = {"agent": "coder", "status": "running", "phase": "1 tactical", "state": state}
    assert job_sheet.render_job_sheet(status_from_memo(memo), None) == [
        "running · coder",
        state,
    ]


def test_one_of_something_is_named_in_the_singular() -> None:
    usage = {"model_calls": 1, "tool_calls": 2}
    assert job_lines.job_usage_line({"usage": usage}).startswith("1 model call · 2 tool calls · ")
    ended = {"status": "completed", "result": {"phases": 2, "rewinds": 1, "usage": usage}}
    assert job_outcome.job_outcome_lines(ended)[-1].startswith("2 phases · 1 rewind · 1 model call")


def test_a_question_that_the_reason_has_whole_is_shown_once() -> None:
    asked = "Green or black?"
    message = f"The agent asks: {asked}"
    waiting: dict[str, Any] = {"reason": "clarification", "message": message, "remedy": ""}
    for question, shown in ((asked, False), (f"{asked}\n\nSay why.", True)):
        about = {"id": "q1", "question": question}
        status = {**STATUS, "waiting": waiting | {"about": about}}
        sheet = job_sheet.render_job_sheet(status, waiting)
        assert any(line.startswith("  question: ") for line in sheet) == shown
        assert "  id: q1" in sheet


def test_advice_stands_apart_from_a_message_of_several_lines() -> None:
    waiting = {
        "reason": "dependency",
        "message": "It failed. It printed:\nno index",
        "remedy": "Mend.",
    }
    assert job_lines.job_waiting_line(waiting).endswith("It printed:\nno index\nMend.")
    assert job_lines.job_waiting_line({**waiting, "message": "It failed"}).endswith(
        ": It failed. Mend."
    )


def test_a_closed_job_says_once_what_it_used() -> None:
    status = {
        "usage": {"model_calls": 1, "unfinished_tokens": 7, "prompt_tokens": 9},
        "limits": {"phase": {"model_calls": {"limit": 500, "spent": 1}}},
    }
    used = "1 model call · 0 tool calls · 9 tokens (7 estimated, for replies that broke off)"
    assert job_sheet.render_job_sheet(status, None)[-2:] == [
        used, "limits: phase model calls 1 of 500"
    ]  # fmt: skip
    closed = {**status, "result": {"status": "completed", "usage": status["usage"]}}
    assert job_sheet.render_job_sheet(closed, None) == []
    assert job_outcome.job_outcome_lines(closed)[-1].endswith(used)


def test_a_completed_job_says_how_many_statements_were_met_and_names_the_others() -> None:
    row = {"id": "S1", "item": "S1", "statement": "Cover tea", "status": "completed"}
    rows = [
        {**row, "verdict": "met"},
        {**row, "id": "S2", "verdict": "unmet", "finding": "nothing on water"},
        {**row, "id": "S3", "status": "dropped", "reason": "no milk here"},
    ]
    result = {"statements": 3, "met": 1, "contract": rows, "summary": "Done."}
    status = {"job_id": "tea-1", "title": "Tea", "status": "completed", "result": result}
    lines = job_outcome.job_outcome_lines(status)
    assert lines[:3] == [
        "tea-1 completed, 1 of 3 statements met, 1 left out",
        "not accepted: S2 (unmet), S3 (dropped)",
        "Done.",
    ]
    assert lines[3:5] == ["not accepted:", "  S2 Cover tea · unmet: nothing on water"]
    assert job_sheet.render_job_sheet(status, None)[0] == (
        "tea-1 · Tea · completed, 1 of 3 statements met, 1 left out"
    )
    result["contract"] = [{**row, "verdict": "not reviewed"}]
    assert job_outcome.job_outcome_lines(status)[0] == "tea-1 completed, 3 statements, not reviewed"
