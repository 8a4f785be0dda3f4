"""Trials as text, from statuses of workers of any version."""

from __future__ import annotations

from cli.trials.trial_rendering import trial_limit_lines, trial_line


def test_a_newer_worker_may_say_more_of_a_trial() -> None:
    usage = {"model_calls": 3, "steeped_calls": 1}
    status = {
        "start": {
            "start": {"agent": "generalist", "instructions": "Tea."},
            "runs": 1,
            "configurations": {"now": {}, "few": {"steep": True}},
            "limits": {"model_calls": 10},
            "steep": True,
        },
        "runs": [
            {
                "job": "tea-now-01",
                "configuration": "now",
                "status": "completed",
                "usage": usage,
                "steeped": True,
            }
        ],
    }
    assert trial_line(status) == "1 of 1 runs ended"
    assert trial_limit_lines(status) == ["model calls 3 of 10"]
