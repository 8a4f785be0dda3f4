"""Renders a trial: pure functions from its status to text."""

from __future__ import annotations

from collections import Counter
from typing import Any

from cli.trials.trial_statistics import TrialSpread
from cli.trials.trial_summary import (
    TrialConfigurationSummary,
    compare_summaries,
    summarise_trial_runs,
    trial_tokens,
)
from protocol.short_text import count_noun, one_line
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun, trial_progress_line
from protocol.usage import Usage

Status = dict[str, Any]
WORDS = {
    "completed": "completed",
    "failed": "failed",
    "late": "out of time",
    "cut": "cut by a limit",
    "unstarted": "not begun",
    "cancelled": "cancelled",
    "running": "running",
    "pending": "to begin",
}
"""What a run's status is called for people."""
MOST_REASON = 200
MARKS = {"completed": "☑", "running": "▶", "pending": "☐"}
ENDED_OTHERWISE = "☒"


def read_trial_runs(status: Status) -> list[TrialRun]:
    """Return the runs of a trial's status; none without a worker's answer.

    A newer worker may say more of them than is known here.
    """
    data = status.get("runs") or (status.get("result") or {}).get("runs") or []
    return [TrialRun.model_validate(run, extra="ignore") for run in data]


def trial_line(status: Status) -> str:
    """`3 of 8 runs ended, 2 running, 3 to begin`; empty without a worker's answer."""
    runs = read_trial_runs(status)
    return trial_progress_line(runs) if runs else ""


def trial_configuration_lines(status: Status) -> list[tuple[str, str]]:
    """Return box and text of each configuration: how many of its runs ended, and how."""
    lines = []
    for summary in summarise_trial_runs(read_trial_runs(status)):
        open_runs = sum(summary.by_status.get(word, 0) for word in ("pending", "running"))
        box = "☑" if not open_runs else "▶" if open_runs < summary.runs else "☐"
        if summary.by_status.get("running"):
            box = "▶"
        lines.append((box, f"{summary.name}: {render_trial_run_counts(summary.by_status)}"))
    return lines


def render_trial_run_counts(by_status: dict[str, int]) -> str:
    """`2 completed, 1 failed, 1 running`."""
    return ", ".join(
        f"{by_status[status]} {word}" for status, word in WORDS.items() if by_status.get(status)
    )


def trial_progress(status: Status) -> tuple[int, int]:
    """Runs that ended, and in all."""
    runs = read_trial_runs(status)
    counts = Counter(run.status for run in runs)
    open_runs = sum(counts[word] for word in ("pending", "running", "unstarted"))
    return len(runs) - open_runs, len(runs)


def trial_run_lines(status: Status) -> list[str]:
    """Return a line for each run that has begun."""
    return [
        f"  {MARKS.get(run.status, ENDED_OTHERWISE)} {run.job}: {WORDS[run.status]}"
        + (f" · {one_line(run.reason, MOST_REASON)}" if run.reason else "")
        + (f" · {_trial_wait_text(run.waiting)}" if run.waiting and not run.reason else "")
        for run in read_trial_runs(status)
        if run.status not in ("pending", "unstarted")
    ]


def _trial_wait_text(waiting: str) -> str:
    return "paused" if waiting == "paused" else f"waits for a person ({waiting})"


def render_trial_sheet(status: Status) -> list[str]:
    """Render a trial: its configurations, its runs, and what they show so far."""
    if not (runs := read_trial_runs(status)):
        return []
    lines = [f"  {box} {text}" for box, text in trial_configuration_lines(status)]
    if used := trial_limit_lines(status):
        lines.append(f"limits of the trial: {' · '.join(used)}")
    if reached := trial_ending_line(status):
        lines.append(reached)
    return [*lines, "runs:", *trial_run_lines(status), *trial_table_lines(runs)]


def trial_ending_line(status: Status) -> str:
    """`the trial's limit of 100 model calls was reached: …`, or who cancelled it; else empty."""
    known = {**(status.get("result") or {}), **status}
    if cancellation := known.get("cancellation"):
        return str(cancellation)
    reached = known.get("reached")
    return f"{reached}: runs at work were ended, and no more began" if reached else ""


def trial_limit_lines(status: Status) -> list[str]:
    """`model calls 90 of 100`, for each limit of the whole trial."""
    start = status.get("start") or (status.get("result") or {}).get("start")
    if not start:
        return []
    limits, used = TrialStart.model_validate(start, extra="ignore").limits, Usage()
    for run in read_trial_runs(status):
        used.add(run.usage or Usage())
    amounts: dict[str, float] = {
        "model_calls": used.model_calls,
        "tool_calls": used.tool_calls,
        "tokens": trial_tokens(used),
        "cost": used.cost,
    }
    lines = [
        f"{key.replace('_', ' ')} {amount:,.10g} of {limit:,.10g}"
        for key, amount in amounts.items()
        if (limit := getattr(limits, key)) is not None
    ]
    if limits.seconds:
        lines.append(f"{limits.seconds:,} seconds in all")
    if limits.wait:
        lines.append(f"{limits.wait:,} seconds of waiting for a person")
    return lines


def trial_table_lines(runs: list[TrialRun]) -> list[str]:
    """Return lines on each configuration, and what their difference shows."""
    summaries = summarise_trial_runs(runs)
    lines = [line for summary in summaries for line in _trial_summary_lines(summary)]
    return [*lines, *compare_summaries(summaries)]


def _trial_summary_lines(summary: TrialConfigurationSummary) -> list[str]:
    interval = f" (95 % interval {summary.low:.0%} to {summary.high:.0%})"
    known = f"completed {summary.share}{interval}" if summary.ended else "no run that counts"
    lines = [f"{summary.name}: {known}"]
    others = {status: count for status, count in summary.by_status.items() if status != "completed"}
    if others:
        lines[0] += f"; {render_trial_run_counts(others)}"
    lines += [
        f"  failed {count_noun(count, 'run')}: {reason or 'no reason is known'}"
        for reason, count in summary.failures.items()
    ]
    if summary.waited:
        reasons = ", ".join(f"{why} {count}" for why, count in summary.waited.items())
        lines.append(f"  waiting for a person when ended: {reasons}")
    if summary.calls and summary.tokens and summary.cost and summary.refusals and summary.rewinds:
        lines.append(
            f"  of completed runs: calls {trial_spread_text(summary.calls)}, "
            f"tokens {trial_spread_text(summary.tokens, ',.0f')}, "
            f"refused calls {trial_spread_text(summary.refusals)}, "
            f"rewinds {trial_spread_text(summary.rewinds)}, "
            f"cost {trial_spread_text(summary.cost, '.4f')}"
        )
    if summary.known > summary.completed:
        many = f"all {summary.known} runs" if summary.known > 1 else "its one run"
        lines.append(
            f"  of {many}: calls {summary.used.model_calls:,}, "
            f"tokens {trial_tokens(summary.used):,}, cost {summary.used.cost:.4f}"
        )
    return lines


def trial_spread_text(spread: TrialSpread, form: str = ",.10g") -> str:
    """`4 (3 to 9)`; a single number where all are equal."""
    if spread.least == spread.most:
        return format(spread.median, form)
    return f"{spread.median:{form}} ({spread.least:{form}} to {spread.most:{form}})"
