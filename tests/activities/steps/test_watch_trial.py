"""Tests for the limits of a whole trial."""

from __future__ import annotations

from typing import Any

import pytest

from activities.steps.watch_trial import reached_trial_limit
from protocol.requests import Usage
from protocol.trial import TrialLimits

USED = Usage(model_calls=10, tool_calls=20, prompt_tokens=900, completion_tokens=100, cost=1.5)


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        ({}, ""),
        ({"model_calls": 11, "tool_calls": 21, "tokens": 1001, "cost": 1.51}, ""),
        ({"model_calls": 10}, "the trial's limit of 10 model calls was reached"),
        ({"tool_calls": 5}, "the trial's limit of 5 tool calls was reached"),
        ({"tokens": 1000}, "the trial's limit of 1,000 tokens was reached"),
        ({"cost": 1.25}, "the trial's limit of 1.25 cost was reached"),
        ({"seconds": 1, "wait": 1}, ""),
    ],
)
def test_limit_is_reached_by_what_all_runs_used(limits: dict[str, Any], reached: str) -> None:
    assert reached_trial_limit(TrialLimits(**limits), USED) == reached
