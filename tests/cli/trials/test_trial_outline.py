"""Trials as text, from statuses of workers of any version."""

from cli.jobs.outline_text import outline_sheet, status_outline
from protocol.status import TrialStatus


def test_a_newer_worker_may_say_more_of_a_trial() -> None:
    usage = {"model_calls": 3, "steeped_calls": 1}
    run = {"job": "tea-now-01", "configuration": "now", "status": "completed", "usage": usage}
    answer = {
        "start": {
            "start": {"agent": "generalist", "instructions": "Tea."},
            "runs": 1,
            "configurations": {"now": {}, "few": {"steep": True}},
            "limits": {"model_calls": 10},
            "steep": True,
        },
        "runs": [{**run, "steeped": True}],
    }
    lines = outline_sheet(status_outline(TrialStatus.model_validate(answer, extra="ignore")))
    assert "1 of 1 runs ended" in lines
    assert "  model calls 3 of 10" in lines
