"""A trial: the same job under several configurations, several times each."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from protocol.job_record import WaitState
from protocol.job_state import Data
from protocol.limits import Budget, Count
from protocol.payloads import JobStart
from protocol.requests import Usage
from protocol.short_text import shorten_to_start

MOST_RUNS = 200
"""Jobs of one trial: its history stays far below the server's limit."""
MOST_SHOWN = 2000
"""Characters of instructions in a trial's status."""
MOST_ITEMS = 50
"""Scope items in a trial's status."""
RunStatus = Literal[
    "pending", "running", "completed", "failed", "cancelled", "late", "cut", "unstarted"
]
"""`cut`: a limit of the whole trial ended the run. `unstarted`: a limit or a cancellation kept it
from its start."""


class Configuration(Data):
    """What differs from the trial's start."""

    agent: str = ""
    instructions: str = ""
    set: dict[str, Any] = Field(default_factory=dict)


class TrialLimits(Budget):
    """Limits of the whole trial: what all its runs use together."""

    seconds: Count | None = None
    """Wall time of the trial."""
    wait: Count | None = None
    """Seconds that a run may wait for a person before it is ended."""


class TrialStart(Data):
    """Input of the workflow `Trial`."""

    start: dict[str, Any]
    """A job's start, or a fork, the same for all runs but for what a configuration changes."""
    configurations: dict[str, Configuration] = Field(min_length=2)
    runs: int = Field(ge=1, le=100, strict=True)
    """Runs of each configuration."""
    parallel: int = Field(2, ge=1, le=50, strict=True)
    """Jobs at work at the same time."""
    seconds: int = Field(3600, ge=1, strict=True)
    """Time of one run. A run that waits for a person ends then, since nobody answers in a trial."""
    limits: TrialLimits = Field(default_factory=TrialLimits)

    @model_validator(mode="after")
    def _runs_are_valid(self) -> Self:
        if (jobs := self.runs * len(self.configurations)) > MOST_RUNS:
            raise ValueError(f"runs: {jobs} jobs in all; a trial has {MOST_RUNS} at most")
        for name in self.configurations:
            if not name.isascii() or not name.isalnum():
                raise ValueError(f"configurations: {name!r}: expected letters and digits")
            JobStart.model_validate(self.job_start(name))
        return self

    def job_start(self, name: str) -> dict[str, Any]:
        """Return the start of a job under the configuration of that name."""
        changed = self.configurations[name]
        start = dict(self.start)
        if changed.agent:
            start["agent"] = changed.agent
        if changed.instructions:
            start["instructions"] = changed.instructions
        if settings := {**(start.get("set") or {}), **changed.set}:
            start["set"] = settings
        return start

    @property
    def title(self) -> str:
        """`now, few: 4 runs each`."""
        names = ", ".join(self.configurations)
        each = "1 run" if self.runs == 1 else f"{self.runs} runs"
        return f"{names}: {each} each"

    @property
    def bounded(self) -> TrialStart:
        """A copy without long texts, for people."""
        start = dict(self.start)
        if text := start.get("instructions"):
            start["instructions"] = shorten_to_start(str(text), MOST_SHOWN)
        if items := start.get("items"):
            start["items"] = items[:MOST_ITEMS]
        changed = {
            name: each.model_copy(
                update={"instructions": shorten_to_start(each.instructions, MOST_SHOWN)}
            )
            for name, each in self.configurations.items()
        }
        return self.model_copy(update={"start": start, "configurations": changed})


class TrialRun(Data):
    """One job of a trial."""

    job: str
    configuration: str
    status: RunStatus = "pending"
    reason: str = ""
    """Why it did not complete."""
    seconds: float = 0.0
    phases: int = 0
    rewinds: int = 0
    usage: Usage | None = None
    """Unknown to the trial for a run that did not complete."""
    waiting: str = ""
    """Why it waits for a person, or waited when it was ended."""
    share: dict[str, float] = Field(default_factory=dict)
    """What it may use of the trial's limits, by key; empty without limits."""
    needs: dict[str, float] = Field(default_factory=dict)
    """How large its share has to be for its next call, by key; empty unless it waits for that."""
    interrupted: bool = False
    """Whether it was ended amid a step, so that its last call may be missing in its use."""


class TrialStatus(Data):
    """How a trial stands: its query, and its result."""

    trial: Literal[True] = True
    """Distinguishes it from the status of a job."""
    agent: str = "trial"
    title: str
    status: Literal["running", "waiting", "completed", "cancelled"]
    start: TrialStart
    reached: str = ""
    """The limit that ended the trial, in a sentence."""
    cancellation: str = ""
    """Who cancelled the trial and why, in a sentence; empty if nobody did."""
    waiting: WaitState | None = None
    """That a person has paused it."""
    notices: list[str] = Field(default_factory=list)
    """Signals that were refused or that changed it, newest last, for people."""
    runs: list[TrialRun]


class WatchTrialRequest(Data):
    """Watches the runs of a trial until they differ from what the trial says of them."""

    lost: list[str] = Field(default_factory=list)
    """Ended jobs that cannot say what they used."""


class WatchTrialReply(Data):
    """How a trial's runs stand."""

    waiting: dict[str, str] = Field(default_factory=dict)
    """Jobs that wait for a person, with the reason."""
    needs: dict[str, dict[str, float]] = Field(default_factory=dict)
    """Jobs that wait for a larger share, with its size by key."""
    usages: dict[str, Usage] = Field(default_factory=dict)
    """What ended jobs have used whose result does not say so."""
    lost: list[str] = Field(default_factory=list)
    """Ended jobs that cannot say what they used."""


def trial_progress_line(runs: list[TrialRun]) -> str:
    """`3 of 8 runs ended, 2 running (1 waiting for a person), 3 to begin`."""
    counts = Counter(run.status for run in runs)
    open_runs = counts["pending"] + counts["running"] + counts["unstarted"]
    parts = [f"{len(runs) - open_runs} of {len(runs)} runs ended"]
    if counts["running"]:
        at_work = [run for run in runs if run.status == "running"]
        waits = {
            "paused": sum(run.waiting == "paused" for run in at_work),
            "waiting for a person": sum(run.waiting not in ("", "paused") for run in at_work),
            "waiting for a share of the limits": sum(bool(run.needs) for run in at_work),
        }
        more = ", ".join(f"{count} {what}" for what, count in waits.items() if count)
        parts.append(f"{counts['running']} running" + (f" ({more})" if more else ""))
    if counts["pending"]:
        parts.append(f"{counts['pending']} to begin")
    if counts["unstarted"]:
        parts.append(f"{counts['unstarted']} not begun")
    return ", ".join(parts)
