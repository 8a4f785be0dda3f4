"""What the runs of a trial show: for each configuration its share, its figures and their spread."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from statistics import median

from pydantic import Field
from temporalio.client import Client, WorkflowQueryFailedError
from temporalio.service import RPCError

from cli.jobs import TRIAL, JobView
from cli.trial_statistics import Share, compare_completion_shares, wilson_interval
from protocol.data_model import Data
from protocol.short_text import one_line
from protocol.trial_status import TrialRun
from protocol.usage import Usage

OVER = ("completed", "failed", "late")
"""A cancelled run shows nothing about its configuration."""
MOST_REASON = 300
MOST_QUERIES = 8
"""Queries at the same time."""


class TrialSpread(Data):
    """Median, least and most of a figure of several runs."""

    median: float
    least: float
    most: float

    @classmethod
    def measure(cls, values: Iterable[float]) -> TrialSpread | None:
        """Return the spread; None without values."""
        numbers = sorted(values)
        if not numbers:
            return None
        return cls(median=median(numbers), least=numbers[0], most=numbers[-1])


class TrialConfigurationSummary(Data):
    """How the runs of one configuration ended."""

    name: str
    runs: int
    by_status: dict[str, int]
    waited: dict[str, int] = Field(default_factory=dict)
    """Runs that were ended while they waited for a person, by reason of the wait."""
    failures: dict[str, int] = Field(default_factory=dict)
    """Runs that failed, by reason."""
    completed: int
    ended: int
    """Runs that count: completed, failed and late ones."""
    low: float
    """Lower bound of the 95 % interval of the share completed."""
    high: float
    calls: TrialSpread | None = None
    """Model calls of completed runs, as the following figures."""
    tokens: TrialSpread | None = None
    cost: TrialSpread | None = None
    refusals: TrialSpread | None = None
    """Refused tool calls."""
    rewinds: TrialSpread | None = None
    seconds: TrialSpread | None = None
    known: int = 0
    """Runs whose use is known, whatever they ended as."""
    used: Usage
    """The sum over those runs."""

    @property
    def share(self) -> Share:
        return Share(self.completed, self.ended)


def summarise_trial_runs(runs: list[TrialRun]) -> list[TrialConfigurationSummary]:
    """Return a summary of each configuration, in the order of the trial's file."""
    groups: dict[str, list[TrialRun]] = {}
    for run in runs:
        groups.setdefault(run.configuration, []).append(run)
    return [_summarise_trial_configuration(name, members) for name, members in groups.items()]


def compare_summaries(summaries: list[TrialConfigurationSummary]) -> list[str]:
    """Return a sentence for each configuration after the first, which it is compared with."""
    return compare_completion_shares({summary.name: summary.share for summary in summaries})


def trial_tokens(usage: Usage) -> int:
    """Return the tokens sent and received."""
    return usage.prompt_tokens + usage.completion_tokens


def _summarise_trial_configuration(name: str, members: list[TrialRun]) -> TrialConfigurationSummary:
    ended = [run for run in members if run.status in OVER]
    completed = [run for run in ended if run.status == "completed"]
    low, high = wilson_interval(Share(len(completed), len(ended)))
    usages = [run.usage for run in completed if run.usage]
    known, used = [run.usage for run in members if run.usage], Usage()
    for usage in known:
        used.add(usage)
    return TrialConfigurationSummary(
        name=name,
        runs=len(members),
        by_status=dict(Counter(run.status for run in members)),
        waited=dict(
            Counter(
                run.waiting
                for run in members
                if run.waiting not in ("", "paused") and run.status != "running"
            )
        ),
        failures=dict(
            Counter(one_line(run.reason, MOST_REASON) for run in ended if run.status == "failed")
        ),
        completed=len(completed),
        ended=len(ended),
        low=low,
        high=high,
        calls=TrialSpread.measure(usage.model_calls for usage in usages),
        tokens=TrialSpread.measure(trial_tokens(usage) for usage in usages),
        cost=TrialSpread.measure(usage.cost for usage in usages),
        refusals=TrialSpread.measure(usage.refused_calls for usage in usages),
        rewinds=TrialSpread.measure(run.rewinds for run in completed),
        seconds=TrialSpread.measure(run.seconds for run in completed),
        known=len(known),
        used=used,
    )


async def fill_trial_usages(client: Client, runs: list[TrialRun]) -> None:
    """Ask the jobs what they used that the trial does not know; needs a worker."""
    slots = asyncio.Semaphore(MOST_QUERIES)

    async def fill_usage(run: TrialRun) -> None:
        async with slots:
            run.usage = await _trial_run_usage(client, run.job)

    await asyncio.gather(
        *(
            fill_usage(run)
            for run in runs
            if run.usage is None and run.status not in ("pending", "unstarted")
        )
    )


async def _trial_run_usage(client: Client, job: str) -> Usage | None:
    """Return what a job used; None if nobody can say any more."""
    with suppress(RPCError, WorkflowQueryFailedError):
        usage = (await client.get_workflow_handle(job).query("status")).get("usage") or {}
        return Usage.model_validate({k: v for k, v in usage.items() if k in Usage.model_fields})
    return None


async def with_trial_usages(client: Client, job_view: JobView) -> JobView:
    """Return the view; of a trial, with what its runs used as far as they can say."""
    status = job_view.status
    data = status.get("runs") or (status.get("result") or {}).get("runs") or []
    if job_view.kind == TRIAL and data:
        runs = [TrialRun.model_validate(run) for run in data]
        if job_view.live:
            await fill_trial_usages(client, runs)
        status["runs"] = [run.model_dump(mode="json") for run in runs]
    return job_view
