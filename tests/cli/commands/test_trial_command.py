"""Tests for the file of a trial and the table of its runs."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from cli.commands.trial_command import trial_attach_command
from cli.jobs.job_memo import JOB, TRIAL
from cli.jobs.job_view import JobView
from cli.jobs.outline_text import (
    OUTCOME,
    job_status_line,
    outline_lines,
    outline_sheet,
    status_outline,
)
from cli.output import UserError
from cli.start.start_files import read_trial_file
from protocol.status import JobStatus, TrialStatus
from protocol.trial_status import TrialRun
from protocol.usage import Usage

EXAMPLE = Path(__file__).parents[3] / "examples/trials/fewer-calls.yaml"


def test_shipped_example_is_valid() -> None:
    start = read_trial_file(EXAMPLE)
    assert list(start.configurations) == ["now", "few"]
    assert start.job_start("few")["set"] == {"limits.job.model_calls": 10}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start: [", "not valid YAML"),
        ("start: {agent: generalist}\nruns: 2\nconfigurations: {now: {}}", "configurations"),
        ("start: {agent: nobody}\nruns: 2\nconfigurations: {a: {}, b: {}}", "nobody"),
        (
            "start: {agent: generalist}\nruns: 2\n"
            "configurations: {a: {}, b: {set: {limits.jbo: 2}}}",
            "jbo",
        ),
        (
            "start: {agent: generalist, set: {model.name: leaf}}\nruns: 2\n"
            "configurations: {a: {}, b: {}}\nlimits: {cost: 2.5}",
            "price is not known under the configuration a",
        ),
        (
            "start: {agent: generalist}\nruns: 2\n"
            "configurations: {a: {}, b: {}}\nlimits: {hours: 2}",
            "hours",
        ),
    ],
)
def test_invalid_file_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        read_trial_file(file)
    assert message in str(refused.value)
    assert str(file) in str(refused.value)


def test_command_to_attach_can_be_pasted() -> None:
    command = trial_attach_command(Path("my trials/tea.yaml"), "tea-1a2b3c")
    assert command == "`starter.py trial 'my trials/tea.yaml' --id tea-1a2b3c --attach`"


def test_table_has_shares_figures_and_the_comparison() -> None:
    def ended(name: str, calls: int | None, status: str) -> TrialRun:
        usage = None if calls is None else Usage(model_calls=calls, prompt_tokens=10 * calls)
        return TrialRun.model_validate(
            {"job": "j", "configuration": name, "status": status, "usage": usage}
        )

    runs = [ended("now", calls, "completed") for calls in (3, 4, 9)]
    runs += [ended("few", None, "late") for _ in range(3)] + [ended("few", None, "cancelled")]
    lines = figures(runs)
    assert "so few runs cannot show any difference" in lines[0]
    assert lines[1:3] == [
        "figures:",
        "  now: completed 3 of 3 (95 % interval 44% to 100%; 2 in a row 100%)",
    ]
    assert "calls 4 (3 to 9), tokens 40 (30 to 90)" in lines[3]
    assert lines[4].startswith("  few: completed 0 of 3")


def figures(runs: list[TrialRun]) -> list[str]:
    return outline_lines(status_outline(TrialStatus(runs=runs)), OUTCOME)


def sheet(status: dict[str, Any]) -> list[str]:
    return outline_sheet(status_outline(TrialStatus.model_validate(status)))


def test_table_names_why_runs_failed_and_counts_tokens_whole() -> None:
    base = {"job": "j", "configuration": "now"}
    reasons = ["no such job", "no such job", ""]
    runs = [TrialRun(**base, status="failed", reason=reason) for reason in reasons]
    usages = [Usage(prompt_tokens=tokens) for tokens in (1000, 1001)]
    runs += [TrialRun(**base, status="completed", usage=usage) for usage in usages]
    lines = figures(runs)
    assert lines[2:4] == ["    failed 2 runs: no such job", "    failed 1 run: no reason is known"]
    assert "tokens 1,000 (1,000 to 1,001)" in lines[4]


def test_progress_counts_runs_that_are_paused() -> None:
    status = trial_status()
    status["runs"][1]["waiting"] = "paused"
    lines = sheet(status)
    assert "4 of 6 runs ended, 1 running (1 paused), 1 to begin" in lines
    assert "  ▶ tea-now-02: running · paused" in lines


def trial_status() -> dict[str, Any]:
    """A trial of two configurations with three runs each, half way."""
    words = {
        "now": ["completed", "running", "pending"],
        "few": ["late", "failed", "cancelled"],
    }
    runs = [
        {"job": f"tea-{name}-{number:02}", "configuration": name, "status": word}
        for name, each in words.items()
        for number, word in enumerate(each, 1)
    ]
    return {"job_id": "tea", "trial": True, "agent": "trial", "status": "running", "runs": runs}


def test_sheet_counts_runs_by_configuration_and_names_those_that_began() -> None:
    lines = sheet(trial_status())
    assert "4 of 6 runs ended, 1 running, 1 to begin" in lines
    assert "  ▶ now: 1 completed, 1 running, 1 to begin" in lines
    assert "  ☑ few: 1 failed, 1 out of time, 1 cancelled" in lines
    assert "  ☒ tea-few-01: out of time" in lines
    assert not any("tea-now-03" in line for line in lines)


def test_sheet_names_the_limit_that_was_reached_and_the_runs_that_it_cut() -> None:
    status = trial_status()
    status["start"] = read_trial_file(EXAMPLE).model_dump() | {"limits": {"model_calls": 16}}
    status["reached"] = "the trial's limit of 8 seconds was reached"
    status["runs"][1] |= {"status": "cut", "waiting": "budget", "usage": {"model_calls": 11}}
    status["runs"][2] |= {"status": "unstarted"}
    lines = sheet(status)
    assert "limits of the trial:\n  model calls 11 of 16" in "\n".join(lines)
    assert any(line.startswith("the trial's limit of 8 seconds was reached:") for line in lines)
    assert "  ☑ now: 1 completed, 1 cut by a limit, 1 not begun" in lines
    assert "    waiting for a person when ended: budget 1" in lines
    assert (
        "  few: completed 0 of 2 (95 % interval 0% to 66%); 1 failed, 1 out of time, 1 cancelled"
        in lines
    )
    status["runs"] = status["runs"][1:3]
    lines = sheet(status)
    assert "  now: no run that counts; 1 cut by a limit, 1 not begun" in lines


def test_line_of_a_watched_trial_has_its_progress() -> None:
    status = TrialStatus.model_validate(trial_status())
    assert job_status_line(status).startswith("running · 4 of 6 runs ended, 1 running, 1 to begin")
    assert status_outline(status).progress == (4, 6)


def test_trial_without_an_answer_of_a_worker_has_a_sheet() -> None:
    lines = sheet({"job_id": "tea"})
    assert lines[0] == "tea"


def test_command_for_jobs_names_a_run_of_the_trial() -> None:
    started = datetime(2026, 3, 1, tzinfo=UTC)
    trial = JobView(
        "tea",
        TrialStatus.model_validate(trial_status()),
        closed=False,
        started=started,
        run_id="r",
        kind=TRIAL,
    )
    with pytest.raises(UserError, match=r"tea is a trial, which has no files; .* as tea-now-01"):
        trial.refuse_trial("has no files")
    replace(trial, status=JobStatus(), kind=JOB).refuse_trial("has no files")
