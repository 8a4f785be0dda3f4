"""Trials with limits, on a model that counts what it is asked."""

import threading
from typing import Any

from rehearsal.wire import Answer, Request
from tests.workflows.short import DONE, Short, hand_over, job

TODOS = 3
RUN_CALLS = 5
"""Model calls of a run that nothing holds up."""
PRICES = {"rehearsal": {"prompt": 100, "cached": 80, "completion": 400}}
MODEL = {"model.name": "rehearsal", "model.max_output_tokens": 100, "prices": PRICES}


class CountingModel:
    """A short job with more todos, and the number of calls that arrived."""

    def __init__(self) -> None:
        self.calls = 0
        self._short = Short({"Hand": [hand_over(*[{}] * TODOS), DONE]})
        self._lock = threading.Lock()

    def __call__(self, request: Request) -> Answer:
        with self._lock:
            self.calls += 1
        return self._short(request)


def limited_trial(runs: int, parallel: int, **limits: Any) -> dict[str, Any]:
    """Return a trial of two equal configurations with these limits."""
    return {
        "start": job(set=MODEL),
        "configurations": {"now": {}, "same": {}},
        "runs": runs,
        "parallel": parallel,
        "seconds": 100,
        "limits": limits,
    }


def used_amount(usage: dict[str, Any], key: str) -> float:
    """Return what a run used of the limit with this key."""
    if key == "tokens":
        return float(usage["prompt_tokens"] + usage["completion_tokens"])
    return float(usage[key])
