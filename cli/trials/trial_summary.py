"""What the runs of a trial show: for each configuration its share, its figures and their spread."""

from collections import Counter

from pydantic import Field

from cli.trials.trial_statistics import Share, TrialSpread, share_interval
from protocol.data_model import Data
from protocol.short_text import one_line
from protocol.trial_status import TrialRun
from protocol.usage import Usage

OVER = ("completed", "failed", "late")
"""A cancelled run shows nothing about its configuration."""
MOST_REASON = 300


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


def trial_tokens(usage: Usage) -> int:
    """Return the tokens sent and received."""
    return usage.prompt_tokens + usage.completion_tokens


def _summarise_trial_configuration(name: str, members: list[TrialRun]) -> TrialConfigurationSummary:
    ended = [run for run in members if run.status in OVER]
    completed = [run for run in ended if run.status == "completed"]
    low, high = share_interval(Share(len(completed), len(ended)))
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
