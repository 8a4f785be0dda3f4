"""Tests for the report of a trial."""

from datetime import UTC, datetime
from typing import Any

import pytest

from cli.jobs.job_memo import TRIAL
from cli.jobs.job_view import JobView
from cli.report.html_page import render_html_page
from cli.report.report_builder import compose_trial_report
from cli.report.report_content import TrialReport
from cli.trials.trial_outline import trial_changes
from protocol.status import TrialStatus
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun
from protocol.usage import Usage

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def trial_start(**changed: Any) -> TrialStart:
    """Two configurations of which one names another model."""
    base = {
        "start": {"agent": "generalist", "instructions": "Make <b>tea</b>."},
        "configurations": {
            "now": {},
            "other": {"set": {"model.name": "leaf", "limits.rewinds": 2}},
        },
        "runs": 2,
    }
    return TrialStart.model_validate({**base, **changed})


def run(name: str, number: int, status: str, calls: int, reason: str = "") -> TrialRun:
    usage = Usage(model_calls=calls, prompt_tokens=100 * calls, refused_calls=calls % 3)
    return TrialRun.model_validate(
        {
            "job": f"tea-{name}-{number:02}",
            "configuration": name,
            "status": status,
            "usage": usage if calls else None,
            "reason": reason,
        }
    )


def trial_report(*runs: TrialRun) -> TrialReport:
    start = trial_start()
    status = TrialStatus(title=start.title, status="running", start=start, runs=list(runs))
    view = JobView("tea", status, closed=False, started=NOON, run_id="r", kind=TRIAL)
    return compose_trial_report(view, status, "http://ui/tea", "default")


RUNS = (
    run("now", 1, "completed", 4),
    run("other", 1, "failed", 9, "<script>alert(1)</script>"),
    run("now", 2, "completed", 8),
    run("other", 2, "pending", 0),
)


def test_report_has_share_spread_and_comparison_of_each_configuration() -> None:
    now, other = trial_report(*RUNS).configurations
    assert (now.completed, now.ended, other.completed, other.ended) == (2, 2, 0, 1)
    assert now.calls
    assert (now.calls.median, now.calls.least, now.calls.most) == (6, 4, 8)
    assert other.calls is None
    assert other.used.model_calls == 9
    page = render_html_page(trial_report(*RUNS))
    assert "1 failed, 1 to begin" in page
    assert "6 (4 to 8)" in page
    assert "Fisher&#39;s exact test" in page


def test_page_links_the_runs_that_have_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMPORAL_UI_ADDRESS", "http://ui")
    page = render_html_page(trial_report(*RUNS))
    assert 'href="http://ui/namespaces/default/workflows/tea-other-01"' in page
    assert 'workflows/tea-other-02"' not in page


def test_texts_of_the_trial_stay_texts() -> None:
    page = render_html_page(trial_report(*RUNS))
    assert "<script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "Make &lt;b&gt;tea&lt;/b&gt;." in page


def test_changes_are_the_settings_that_differ() -> None:
    assert trial_changes(trial_start()) == [
        ("model.name", "", "leaf"),
        ("limits.rewinds", "", "2"),
    ]


def test_trial_that_has_not_begun_has_a_page() -> None:
    page = render_html_page(trial_report())
    assert "every run is a start of the agent generalist; 2 runs of each" in page
