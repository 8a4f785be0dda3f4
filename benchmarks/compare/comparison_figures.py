"""Computes the table's figures from the endpoint's log and an adapter's outcome."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import mean

from benchmarks.compare.adapter_task import Outcome
from benchmarks.drifting_model import ITEMS, count_correct_items


@dataclass(frozen=True)
class Steps:
    """One long run. A step is a model call with what follows it."""

    ended: str
    error: str
    calls: int
    files: int
    seconds: float
    ms: float
    first_ms: float
    """Milliseconds per step in the first tenth."""
    last_ms: float
    bytes_first: float
    """Recorded per step in the first tenth."""
    bytes_last: float
    bytes_all: int
    """Recorded by the end, including any other store."""
    prompt_last: int
    """Size of the largest prompt in bytes."""
    runs: int
    actions_per_call: float
    """Temporal Actions for each model call; 0 without Temporal."""


@dataclass(frozen=True)
class Drifted:
    """Results of the drifting model's runs."""

    seeds: int
    made: float
    """Mean over the seeds of the number of items made."""
    least: int
    whole: int
    """Number of runs in which every item was made."""
    calls: float
    ends: dict[str, int]
    """How the runs ended, and how often."""


def read_call_arrivals(log: Path, model: str) -> list[tuple[float, int]]:
    """Return arrival time in seconds and size in bytes of each call of this model."""
    if not log.exists():
        return []
    lines = (json.loads(line) for line in log.read_text().splitlines())
    return [(arrived, size) for arrived, name, size in lines if name == model]


def adapter_step_figures(outcome: Outcome, calls: Sequence[tuple[float, int]]) -> Steps:
    took = [(after - before) * 1000 for (before, _), (after, _) in pairwise(calls)]
    tenth = max(1, len(took) // 10)
    first, last = _recorded_bytes_per_step(outcome.recorded)
    recorded = outcome.recorded[-1][1] if outcome.recorded else 0
    return Steps(
        ended=outcome.ended,
        error=outcome.error,
        calls=len(calls),
        files=len(outcome.made or ()),
        seconds=sum(took) / 1000,
        ms=mean(took) if took else 0.0,
        first_ms=mean(took[:tenth]) if took else 0.0,
        last_ms=mean(took[-tenth:]) if took else 0.0,
        bytes_first=first,
        bytes_last=last,
        bytes_all=recorded + outcome.store,
        prompt_last=max((size for _, size in calls), default=0),
        runs=outcome.runs,
        actions_per_call=outcome.actions / len(calls) if calls else 0.0,
    )


def _recorded_bytes_per_step(recorded: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Return recorded bytes per step in the first and in the last tenth."""
    marks = sorted(dict(recorded).items())
    if len(marks) < 2:
        return 0.0, 0.0
    tenth = max(1, (len(marks) - 1) // 10)
    return _bytes_per_step_between(marks[0], marks[tenth]), _bytes_per_step_between(
        marks[-1 - tenth], marks[-1]
    )


def _bytes_per_step_between(low: tuple[int, int], high: tuple[int, int]) -> float:
    return (high[1] - low[1]) / (high[0] - low[0])


def drift_comparison_figures(runs: Sequence[tuple[Outcome, int]]) -> Drifted:
    """Summarise outcomes, each with its number of model calls."""
    counts = [count_correct_items(outcome.made or {}) for outcome, _ in runs]
    return Drifted(
        seeds=len(runs),
        made=mean(counts),
        least=min(counts),
        whole=counts.count(ITEMS),
        calls=mean(calls for _, calls in runs),
        ends=dict(
            Counter(
                each.error.partition(":")[0] if each.ended == "stopped" else each.ended
                for each, _ in runs
            )
        ),
    )
