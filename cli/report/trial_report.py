"""The report of a trial: what its configurations change, and how their runs compare."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Literal

from temporalio.client import Client

from cli.jobs.job_view import JobView
from cli.report.sanitize import sanitize_line, sanitize_text
from cli.trials.trial_rendering import (
    WORDS,
    read_trial_runs,
    render_trial_run_counts,
    trial_ending_line,
    trial_limit_lines,
)
from cli.trials.trial_summary import (
    TrialConfigurationSummary,
    compare_summaries,
    summarise_trial_runs,
)
from cli.trials.trial_usage import fill_trial_usages
from engine.web_ui import answering_web_ui_link, job_web_ui_link
from protocol.data_model import Data
from protocol.trial_start import TrialStart
from protocol.trial_status import TrialRun, trial_progress_line
from protocol.usage import Usage

UNKNOWN = "No worker answered, and the trial has not ended: its runs are not known."
MOST_VALUE = 2000


class ConfigurationLine(TrialConfigurationSummary):
    """A configuration and how its runs ended."""

    counts: str
    """`2 completed, 1 failed`."""


class Change(Data):
    """A setting that the configurations do not share."""

    key: str
    values: list[str]
    """The value under each configuration, in their order; empty where it is not set."""


class RunLine(Data):
    """A run of a trial."""

    job: str
    configuration: str
    status: str
    reason: str = ""
    waiting: str = ""
    """Why it waits for a person."""
    seconds: float = 0.0
    phases: int = 0
    rewinds: int = 0
    usage: Usage | None = None
    """None where nobody can say any more."""
    link: str | None = None
    """Its page in Temporal's Web UI."""


class TrialReport(Data):
    """A trial's report."""

    version: Literal[1] = 1
    id: str
    title: str
    status: str
    progress: str
    begins: str
    """What every run begins with."""
    started: datetime
    ended: datetime | None = None
    read: datetime
    """When the report was made."""
    link: str | None = None
    instructions: str = ""
    """What all runs are to do."""
    configurations: list[ConfigurationLine]
    comparisons: list[str]
    changes: list[Change]
    limits: list[str]
    """What bounds the trial, a line each."""
    runs: list[RunLine]
    remarks: list[str]


async def build_trial_report(client: Client, view: JobView) -> TrialReport:
    """Return the report of a trial, under way or over."""
    runs = read_trial_runs(view.status)
    remarks = [] if runs else [UNKNOWN]
    if view.live:
        await fill_trial_usages(client, runs)
    elif runs:
        remarks.append("No worker answered: what runs used that did not complete is not known.")
    link = await answering_web_ui_link(view.id, client.namespace)
    links = {run.job: job_web_ui_link(run.job, client.namespace) if link else None for run in runs}
    return compose_trial_report(view, runs, remarks, link, links, now=datetime.now(UTC))


def compose_trial_report(
    view: JobView,
    runs: list[TrialRun],
    remarks: list[str],
    link: str | None,
    links: dict[str, str | None],
    *,
    now: datetime,
) -> TrialReport:
    """Return the report from what was read."""
    data = view.status.get("start") or (view.status.get("result") or {}).get("start")
    start = TrialStart.model_validate(data, extra="ignore") if data else None
    summaries = summarise_trial_runs(runs)
    if reached := trial_ending_line(view.status):
        remarks = [*remarks, f"{reached[0].upper()}{reached[1:]}."]
    status = {**view.status, "runs": [run.model_dump(mode="json") for run in runs]}
    return TrialReport(
        id=sanitize_line(view.id),
        title=sanitize_line(view.status.get("title")),
        status=sanitize_line(view.status_word, 40),
        progress=trial_progress_line(runs) if runs else "",
        begins=_compose_trial_start(start),
        started=view.started,
        ended=view.ended,
        read=now,
        link=link,
        instructions=sanitize_text(start.start.get("instructions")) if start else "",
        configurations=[
            ConfigurationLine(
                **summary.model_dump(), counts=render_trial_run_counts(summary.by_status)
            )
            for summary in summaries
        ],
        comparisons=compare_summaries(summaries),
        changes=compose_trial_changes(start) if start else [],
        limits=[*compose_trial_limits(start), *trial_limit_lines(status)] if start else [],
        runs=[_compose_trial_run_line(run, links.get(run.job)) for run in runs],
        remarks=remarks,
    )


def compose_trial_changes(start: TrialStart) -> list[Change]:
    """Return the settings that not all configurations share, with each one's value."""
    settings = [_flatten_trial_settings(start.job_start(name)) for name in start.configurations]
    keys = dict.fromkeys(key for each in settings for key in each)
    return [
        Change(
            key=sanitize_line(key),
            values=[sanitize_text(each.get(key), MOST_VALUE) for each in settings],
        )
        for key in keys
        if len({each.get(key) for each in settings}) > 1
    ]


def compose_trial_limits(start: TrialStart) -> list[str]:
    """Return what bounds the trial, a line each."""
    return [
        f"{start.runs} {'run' if start.runs == 1 else 'runs'} of each configuration, "
        f"{start.parallel} at the same time",
        f"{start.seconds:,} seconds for a run",
    ]


def _flatten_trial_settings(job: dict[str, Any]) -> dict[str, str]:
    """Return a job's start as text by key; those under `set` by their own names."""
    flat = {"agent": str(job.get("agent") or "")}
    flat["instructions"] = str(job.get("instructions") or "")
    flat |= {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in (job.get("set") or {}).items()
    }
    return flat


def _compose_trial_start(start: TrialStart | None) -> str:
    if start is None:
        return ""
    if fork := start.start.get("fork"):
        phase = fork.get("phase")
        place = f"the start of phase {phase}" if phase else "the end"
        return sanitize_line(f"a fork from {place} of {fork.get('job')}")
    return sanitize_line(f"a start of the agent {start.start.get('agent')}")


def _compose_trial_run_line(run: TrialRun, link: str | None) -> RunLine:
    return RunLine(
        job=sanitize_line(run.job),
        configuration=run.configuration,
        status=WORDS[run.status],
        reason=sanitize_line(run.reason),
        waiting=run.waiting,
        seconds=run.seconds,
        phases=run.phases,
        rewinds=run.rewinds,
        usage=run.usage,
        link=link if run.status not in ("pending", "unstarted") else None,
    )
