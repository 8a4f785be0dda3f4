"""The outline of a trial: its configurations, its runs, and what they show so far."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cli.report.value_formats import format_duration, format_money, format_number
from cli.trials import trial_summary
from cli.trials.trial_statistics import TrialSpread, all_complete_rate, compare_completion_shares
from protocol.outline import (
    Outline,
    Row,
    Section,
    listed_section,
    mark,
    needs_section,
    notices_section,
    outline_sections,
    text_rows,
    wait_line,
)
from protocol.short_text import count_noun, one_line
from protocol.status import TrialStatus
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun, trial_progress_line
from protocol.usage import Usage

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
MOST_VALUE = 2000
AMOUNTS = ("Model calls", "Tokens", "Cost", "Refused calls", "Rewinds", "Seconds")
RUNS = ("Run", "Configuration", "State", *AMOUNTS[:-1], "Time")
FIGURES = ("Configuration", "Completed runs", "95 % interval", *AMOUNTS)


def trial_outline(
    status: TrialStatus, notices: Sequence[object], links: Mapping[str, str] | None = None
) -> Outline:
    """Return the outline of a trial.

    Args:
        notices: Those that people are shown, newest first.
        links: Pages of its runs.
    """
    runs = status.runs
    summaries = trial_summary.summarise_trial_runs(runs)
    comparisons = compare_completion_shares({each.name: each.share for each in summaries})
    line = trial_progress_line(runs) if runs else status.details
    return Outline(
        id=status.job_id,
        title=one_line(status.title, 80),
        word=status.status,
        ending=status.status,
        facts=(status.agent or "trial",),
        place=line,
        progress=_trial_progress(runs),
        wait=wait_line(status.waiting, status.waiting_for),
        sections=outline_sections(
            [
                needs_section(status),
                Section(
                    "result",
                    rows=text_rows(trial_ending_line(status), *comparisons),
                ),
                *(_start_sections(status.start) if status.start else ()),
                Section("list", line, rows=tuple(map(_configuration_row, summaries))),
                Section("jobs", "Runs", rows=tuple(_run_rows(runs, links or {})), columns=RUNS),
                Section(
                    "figures",
                    "Figures",
                    rows=(*map(_summary_row, summaries), *map(_total_row, summaries)),
                    columns=FIGURES,
                ),
                listed_section("figures", "Limits of the trial", trial_limit_lines(status)),
                notices_section(notices),
            ]
        ),
    )


def _start_sections(start: TrialStart) -> list[Section]:
    """What all runs do, and the settings that the configurations do not share."""
    base = start.start
    begins = f"start of the agent {base.get('agent')}"
    if fork := base.get("fork"):
        place = f"the start of phase {fork['phase']}" if fork.get("phase") else "the end"
        begins = f"fork from {place} of {fork.get('job')}"
    lead = (
        f"every run is a {begins}; {count_noun(start.runs, 'run')} of each configuration, "
        f"{start.parallel} at the same time, {start.seconds:,} seconds for a run"
    )
    rows = [
        Row(key, cells=(key, *(value or "as it is" for value in values)), is_detail=True)
        for key, *values in trial_changes(start)
    ]
    instructions = one_line(str(base.get("instructions") or ""), MOST_VALUE)
    return [
        Section("scope", "Instructions", instructions),
        Section("scope", "What is compared", lead, tuple(rows), ("Setting", *start.configurations)),
    ]


def trial_changes(start: TrialStart) -> list[tuple[str, ...]]:
    """Return the settings that not all configurations share, each with its values in their order.

    A value that is not set is empty.
    """
    settings = [_flatten_settings(start.job_start(name)) for name in start.configurations]
    keys = dict.fromkeys(key for each in settings for key in each)
    rows = [(key, *(each.get(key, "")[:MOST_VALUE] for each in settings)) for key in keys]
    return [row for row in rows if len(set(row[1:])) > 1]


def _flatten_settings(job: dict[str, Any]) -> dict[str, str]:
    """Return a job's start as text by key; those under `set` by their own names."""
    return {
        "agent": str(job.get("agent") or ""),
        "instructions": str(job.get("instructions") or ""),
        **{
            key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            for key, value in (job.get("set") or {}).items()
        },
    }


def _configuration_row(summary: trial_summary.TrialConfigurationSummary) -> Row:
    """A configuration: how many of its runs ended, and how."""
    open_runs = sum(summary.by_status.get(word, 0) for word in ("pending", "running"))
    has_begun = summary.by_status.get("running") or open_runs < summary.runs
    word = "completed" if not open_runs else "running" if has_begun else "pending"
    return Row(f"{summary.name}: {trial_run_counts(summary.by_status)}", mark(word))


def trial_run_counts(by_status: dict[str, int]) -> str:
    """`2 completed, 1 failed, 1 running`."""
    return ", ".join(
        f"{by_status[status]} {word}" for status, word in WORDS.items() if by_status.get(status)
    )


def _trial_progress(runs: Sequence[TrialRun]) -> tuple[int, int]:
    is_open = [run.status in ("pending", "running", "unstarted") for run in runs]
    return is_open.count(False), len(runs)


def _run_rows(runs: Sequence[TrialRun], links: Mapping[str, str]) -> list[Row]:
    """The runs; a terminal shows those that have begun."""
    return [
        Row(
            f"{run.job}: {state}",
            mark(run.status),
            cells=(
                *(run.job, run.configuration, state, *_amounts(run.usage)),
                *(str(run.rewinds), format_duration(run.seconds or None)),
            ),
            link=links.get(run.job, ""),
            is_detail=run.status in ("pending", "unstarted"),
        )
        for run in runs
        for state in [_run_state(run)]
    ]


def _run_state(run: TrialRun) -> str:
    wait = trial_wait_text(run.waiting) if run.waiting else ""
    why = one_line(run.reason, MOST_REASON) or wait
    return " · ".join(filter(None, [WORDS[run.status], why]))


def _amounts(usage: Usage | None) -> tuple[str, ...]:
    """Model calls, tokens, cost and refused calls."""
    if usage is None:
        return ("–",) * 4  # noqa: RUF001 - a dash for what is not known
    amounts = usage.model_calls, trial_summary.trial_tokens(usage)
    return (
        *(format_number(amount) for amount in amounts),
        format_money(usage.cost),
        format_number(usage.refused_calls),
    )


def trial_wait_text(waiting: str) -> str:
    return "paused" if waiting == "paused" else f"waits for a person ({waiting})"


def trial_ending_line(status: TrialStatus) -> str:
    """`the trial's limit of 100 model calls was reached: …`, or who cancelled it; else empty."""
    if status.cancellation:
        return status.cancellation
    ended = "runs at work were ended, and no more began"
    return f"{status.reached}: {ended}" if status.reached else ""


def trial_limit_lines(status: TrialStatus) -> list[str]:
    """`model calls 90 of 100`, for each limit of the whole trial."""
    if status.start is None:
        return []
    limits, used = status.start.limits, Usage()
    for run in status.runs:
        used.add(run.usage or Usage())
    amounts: dict[str, float] = {
        "model_calls": used.model_calls,
        "tool_calls": used.tool_calls,
        "tokens": trial_summary.trial_tokens(used),
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


def _summary_row(summary: trial_summary.TrialConfigurationSummary) -> Row:
    """The figures of a configuration: the median, with the least and the most."""
    interval = f"{summary.low:.0%} to {summary.high:.0%}"
    known = f"completed {summary.share} (95 % interval {interval}"
    if summary.share.runs > 2:
        half = (summary.share.runs + 1) // 2
        known += f"; {half} in a row {all_complete_rate(summary.share, half):.0%}"
    known += ")"
    known = known if summary.ended else "no run that counts"
    others = {status: count for status, count in summary.by_status.items() if status != "completed"}
    if others:
        known += f"; {trial_run_counts(others)}"
    below = [
        f"failed {count_noun(count, 'run')}: {reason or 'no reason is known'}"
        for reason, count in summary.failures.items()
    ]
    if summary.waited:
        reasons = ", ".join(f"{why} {count}" for why, count in summary.waited.items())
        below.append(f"waiting for a person when ended: {reasons}")
    cells = (
        _spread_text(summary.calls),
        _spread_text(summary.tokens, ",.0f"),
        _spread_text(summary.cost, ".4f"),
        _spread_text(summary.refusals),
        _spread_text(summary.rewinds),
        _spread_text(summary.seconds, ",.0f"),
    )
    if summary.calls:
        named = zip(("calls", "tokens", "cost", "refused calls", "rewinds"), cells, strict=False)
        below.append("of completed runs: " + ", ".join(f"{name} {text}" for name, text in named))
    if summary.known > summary.completed:
        many = f"all {summary.known} runs" if summary.known > 1 else "its one run"
        calls, tokens, cost, _ = _amounts(summary.used)
        below.append(f"of {many}: calls {calls}, tokens {tokens}, cost {cost}")
    return Row(
        f"{summary.name}: {known}",
        cells=(summary.name, str(summary.share), interval, *cells),
        below=tuple(below),
    )


def _total_row(summary: trial_summary.TrialConfigurationSummary) -> Row:
    name = f"Together, {summary.name}"
    return Row(
        name, cells=(name, str(summary.known), "", *_amounts(summary.used), "", ""), is_detail=True
    )


def _spread_text(spread: TrialSpread | None, form: str = ",.10g") -> str:
    """`4 (3 to 9)`; a single number where all are equal."""
    if spread is None:
        return "–"  # noqa: RUF001 - a dash for what is not known
    if spread.least == spread.most:
        return format(spread.median, form)
    return f"{spread.median:{form}} ({spread.least:{form}} to {spread.most:{form}})"
