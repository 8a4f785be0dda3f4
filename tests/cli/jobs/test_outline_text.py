"""What a person sees in a terminal, computed from the status alone."""

from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from cli import output
from cli.commands.look_commands import COLUMNS, NARROWED
from cli.jobs.job_memo import JOB, status_from_memo
from cli.jobs.job_view import JobView
from cli.jobs.outline_text import (
    job_exit_code,
    job_outcome_lines,
    job_status_line,
    outline_lines,
    outline_sheet,
    render_live_view,
    status_outline,
)
from cli.output import escape_controls, result_console
from protocol.notices import Notice
from protocol.outline import limits_line, usage_line, wait_line
from protocol.status import (
    AnyStatus,
    JobStatus,
    LimitUse,
    ProjectStatus,
    ProjectUnit,
    UnderWay,
)
from protocol.usage import Usage
from protocol.waiting import WaitState

STATUS: dict[str, Any] = {
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
KEY_WANTED = {"reason": "credentials", "message": "The key was refused.", "remedy": "Set one."}


def job(**fields: Any) -> JobStatus:
    return JobStatus.model_validate(STATUS | fields)


def sheet(status: AnyStatus) -> list[str]:
    return outline_sheet(status_outline(status))


def painted(status: JobStatus, silence: str = "", width: int = 100) -> str:
    out = StringIO()
    console = Console(file=out, width=width, force_terminal=False)
    events = [(datetime(2026, 1, 1, tzinfo=UTC), "phase 3 · todo 2 · write_file [red]x")]
    outline = status_outline(status)
    console.print(render_live_view(outline, running_for="0:00:05", events=events, silence=silence))
    return out.getvalue()


def test_todos_that_nobody_did_are_not_needed_and_no_progress() -> None:
    todos = [*STATUS["todos"][:1], {"id": 2, "content": "Second", "status": "passed over"}]
    outline = status_outline(job(todos=todos))
    assert [(row.mark, row.text) for row in outline.steps] == [
        ("☑", "1. First"),
        ("·", "2. Second (passed over)"),
    ]
    assert outline.progress == (1, 1)


def test_the_line_names_state_phase_progress_and_step() -> None:
    line = "running · phase 3 · tactical · Extraction · plan 2 of 4 · 1/3 · 2. Second"
    assert job_status_line(job()) == line
    assert job_status_line(job(waiting=KEY_WANTED, status="waiting")).startswith(
        "waiting (credentials): The key was refused. Set one. · phase 3"
    )


def test_the_screen_shows_texts_as_they_are() -> None:
    shown = painted(job())
    for words in ("Read the [bold]law", "write_file [red]x", "▶ 2. Second", "1/3"):
        assert words in shown


def test_what_takes_minutes_is_named_by_what_it_does() -> None:
    status = job()
    status.under_way = [UnderWay(activity="judge_ending", since="2026-01-01T00:00:00Z", seconds=64)]
    assert (
        "check of the end (guards, verifiers, the tests that prove the work) under way for 0:01:04"
    ) in sheet(status)


def test_what_needs_a_person_comes_first_then_the_list_then_figures() -> None:
    usage = Usage(model_calls=1, tool_calls=2, prompt_tokens=9)
    limits = {"phase": {"model_calls": {"limit": 500, "spent": 1}}}
    status = job(waiting=KEY_WANTED, status="waiting", usage=usage, limits=limits, checkpoint="c")
    status.notices = [Notice(text="older"), Notice(text="newer")]
    status.under_way = [UnderWay(activity="model_call", since="2026-01-01T00:00:00Z", seconds=64)]
    assert sheet(status) == [
        "creator-1 · Read the [bold]law",
        "waiting · creator",
        "waiting (credentials): The key was refused. Set one.",
        "model call under way for 0:01:04",
        "phase 3 · tactical · Extraction · plan 2 of 4 · 1 of 3 done",
        *("  ☑ 1. First", "  ▶ 2. Second", "  ☐ 3. Third"),
        "3 phases · 0 rewinds · 1 model call · 2 tool calls · 9 tokens",
        "limits: phase model calls 1 of 500",
        "checkpoint c",
        *("notices:", "  newer", "  older"),
    ]


def test_cost_shows_when_there_is_some_and_limits_when_there_are() -> None:
    used = Usage(model_calls=3, prompt_tokens=1200)
    assert usage_line(used) == "3 model calls · 0 tool calls · 1,200 tokens"
    cached = used.model_copy(update={"cached_tokens": 1000, "written_tokens": 50})
    assert usage_line(cached).endswith("1,200 tokens (cache: 1,000 read, 50 written)")
    assert usage_line(used.model_copy(update={"cost": 0.01234})).endswith("tokens · cost 0.0123")
    broken = used.model_copy(update={"unfinished_tokens": 7})
    assert usage_line(broken).endswith("(7 estimated, for replies that broke off)")
    limits = {
        "job": {"cost": LimitUse(limit=2.0, spent=1.97)},
        "phase": {"tokens": LimitUse(limit=1_000_000, spent=12_345)},
    }
    line = "limits: job cost 1.97 of 2 · phase tokens 12,345 of 1,000,000"
    assert limits_line(limits) == line
    assert line in painted(job(limits=limits))
    assert limits_line({"job": {}}) == usage_line(Usage()) == ""


@pytest.mark.parametrize("message", ["The key was refused.", "The key was refused"])
def test_waiting_comes_with_the_remedy(message: str) -> None:
    status = job(waiting=KEY_WANTED | {"message": message})
    assert "waiting (credentials): The key was refused. Set one." in painted(status)


@pytest.mark.parametrize("width", [40, 60, 80])
def test_what_to_do_is_whole_on_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    remedy = "Set the key in the environment of the worker, restart it and resume."
    screen = result_console()
    with screen.capture() as shown:
        outline = status_outline(job(waiting=KEY_WANTED | {"remedy": remedy}))
        screen.print(render_live_view(outline, running_for="0:00:05", events=[], silence=""))
    lines = [line.strip("│ ") for line in shown.get().splitlines()]
    assert remedy in " ".join(lines)
    assert max(map(len, shown.get().splitlines())) == width
    # The last lines are cut off on a terminal with few lines.
    assert shown.get().index("resume.") < shown.get().index("1. First")


def test_an_empty_status_is_shown_too() -> None:
    assert job_status_line(JobStatus()) == "running"
    assert "no worker answers" in painted(JobStatus(), silence="no worker answers")
    assert "None" not in painted(JobStatus())
    failed = JobStatus(job_id="x", status="failed", error="why")
    assert job_outcome_lines(failed) == ["x failed: why"]
    assert sheet(failed) == ["x", "failed", "why"]


@pytest.mark.parametrize(
    ("content", "shown"),
    [({"grams": 3}, '{"grams": 3}'), (None, "30 bytes"), ("tea" * 1000, "30 bytes")],
)
def test_typed_result_is_shown_unless_it_is_long(content: Any, shown: str) -> None:
    typed = {"path": "output/result.json", "bytes": 30, "content": content}
    status = job(result={"status": "completed", "summary": "Done.", "result": typed})
    assert f"result output/result.json: {shown}" in job_outcome_lines(status)


def test_what_is_only_claimed_is_named() -> None:
    row = {"id": "B1", "item": "B1", "statement": "Read it.", "status": "completed"}
    row |= {"verdict": "met", "claim": "read tea.md"}
    status = job(result={"status": "completed", "contract": [row]}, todos=[])
    line = "  B1 Read it. · met, claimed only: read tea.md"
    assert job_outcome_lines(status)[-2:] == ["contract:", line]


def test_elapsed_never_goes_below_zero() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    view = JobView("x", JobStatus(), closed=False, started=now, run_id="r")
    assert view.elapsed_text(now + timedelta(hours=1, seconds=2)) == "1:00:02"
    assert view.elapsed_text(now - timedelta(seconds=3)) == "0:00:00"


def test_control_characters_do_not_reach_the_terminal() -> None:
    assert escape_controls("a\x1b[2Jb\nc") == "a\\x1b[2Jb\nc"


def test_columns_are_as_wide_as_they_must_be() -> None:
    rows: list[dict[str, Any]] = [
        {"job_id": "creator-with-a-long-id", "title": None},
        {"job_id": "x", "title": "a\nb"},
    ]
    assert output.render_text_table(rows, ("job_id", "title")) == [
        "JOB_ID                  TITLE",
        "creator-with-a-long-id  -",
        "x                       a b",
    ]


@pytest.mark.parametrize("width", [60, 80, 110])
def test_a_list_fits_the_terminal(width: int) -> None:
    row = {
        "job_id": "creator-57507a", "agent": "creator", "status": "waiting: credentials",
        "phase": "12 tactical", "title": "Extract every requirement that the document sets.",
        "started": "2026-11-28 22:41 UTC",
    }  # fmt: skip
    lines = output.render_text_table([row, row], COLUMNS, width, NARROWED)
    assert max(map(len, lines)) <= width
    assert all("creator-57507a" in line and "Extract" in line for line in lines[1:])
    assert ("AGENT" in lines[0], "STARTED" in lines[0]) == (width > 80, width > 80)


def test_a_wait_shows_until_when() -> None:
    waiting = job(waits_until="2026-03-01T09:00:00Z")
    sentence = "the agent waits until 2026-03-01T09:00:00Z"
    assert sentence in painted(waiting)
    assert sentence in sheet(waiting)
    assert "waits until" not in painted(job())


def test_of_a_closed_job_the_remote_is_told_as_it_was_then() -> None:
    remote = {"url": "s3://checks", "behind": "it cannot be reached"}
    lacks = "the remote s3://checks lacks checkpoints: it cannot be reached"
    assert sheet(job(remote=remote))[-1] == lacks
    ended = job(status="completed", remote=remote, result={"status": "completed"})
    assert "when the job ended, the remote s3://checks lacked checkpoints" in sheet(ended)[-1]


def test_a_repository_that_hosts_have_copies_of_is_named_with_its_host() -> None:
    status = ProjectStatus.model_validate(
        {"repository": "/srv/tea.git", "remote": {"url": "s3://checks"}}
    )
    assert sheet(status)[-1] == (
        "git clone /srv/tea.git (on the host where it began; each host that worked on it has "
        ".longhaul/projects/tea.git in its root)"
    )


def test_a_state_on_record_names_the_phase_once() -> None:
    state = "phase 1 (tactical) Mend the bug, 2/3 todos"
    memo = {"agent": "coder", "status": "running", "phase": "1 tactical", "state": state}
    assert sheet(status_from_memo(JOB, memo)) == ["running · coder", state]


def test_a_question_that_the_reason_has_whole_is_shown_once() -> None:
    asked = "Green or black?"
    waiting = WaitState(reason="clarification", message=f"The agent asks: {asked}", remedy="")
    for question, shown in ((asked, False), (f"{asked}\n\nSay why.", True)):
        waiting.about = {"id": "q1", "question": question}
        lines = sheet(job(waiting=waiting))
        assert any(line.startswith("  question: ") for line in lines) == shown
        assert "  id: q1" in lines


def test_advice_stands_apart_from_a_message_of_several_lines() -> None:
    waiting = WaitState(
        reason="dependency", message="It failed. It printed:\nno index", remedy="Mend."
    )
    assert wait_line(waiting).endswith("It printed:\nno index\nMend.")
    waiting.message = "It failed"
    assert wait_line(waiting).endswith(": It failed. Mend.")


def test_a_closed_job_says_once_what_it_used() -> None:
    usage = Usage(model_calls=1, unfinished_tokens=7, prompt_tokens=9)
    limits = {"phase": {"model_calls": {"limit": 500, "spent": 1}}}
    used = "1 model call · 0 tool calls · 9 tokens (7 estimated, for replies that broke off)"
    result = {"status": "completed", "phases": 2, "rewinds": 1, "usage": usage}
    closed = job(status="completed", usage=usage, limits=limits, result=result)
    line = f"2 phases · 1 rewind · {used}"
    assert sheet(closed)[-1] == job_outcome_lines(closed)[-1] == line
    assert str(sheet(closed)).count("model call") == 1


def test_a_completed_job_says_how_many_statements_were_met_and_names_the_others() -> None:
    row = {"id": "S1", "item": "S1", "statement": "Cover tea", "status": "completed"}
    rows = [
        {**row, "verdict": "met"},
        {**row, "id": "S2", "verdict": "unmet", "finding": "nothing on water"},
        {**row, "id": "S3", "status": "dropped", "reason": "no milk here"},
    ]
    result = {
        "status": "completed", "statements": 3, "met": 1, "contract": rows, "summary": "Done.",
        "deliverables": ["output/a.md"],
    }  # fmt: skip
    status = job(job_id="tea-1", title="Tea", status="completed", result=result, todos=[])
    lines = job_outcome_lines(status)
    assert lines == [
        "tea-1 completed, 1 of 3 statements met, 1 left out",
        "not accepted: S2 (unmet), S3 (dropped)",
        "Done.",
        *("deliverables:", "  output/a.md"),
        "contract:",
        "  S2 Cover tea · unmet: nothing on water",
    ]
    assert sheet(status)[1] == "completed, 1 of 3 statements met, 1 left out · creator"
    assert outline_lines(status_outline(status), ["result"]) == lines[1:3]
    result["contract"] = [{**row, "verdict": "not reviewed"}]
    status = job(job_id="tea-1", status="completed", result=result)
    assert job_outcome_lines(status)[0] == "tea-1 completed, 3 statements, not reviewed"


def test_a_project_with_a_blocked_unit_has_not_done_all() -> None:
    now = datetime.now(UTC)
    for word, code in (("completed", 0), ("blocked", 1)):
        units = [ProjectUnit(id="brew", title="Brews", status=word)]
        status = ProjectStatus(status="completed", units=units)
        assert job_exit_code(JobView("x", status, closed=True, started=now, run_id="r")) == code
