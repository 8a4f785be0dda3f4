"""The start input of a trial: the same job under several configurations, several times each."""

from typing import Any, Self

from pydantic import Field, model_validator

from protocol.data_model import Data
from protocol.limits import LEAST, Budget, Count
from protocol.payloads import JobStart
from protocol.short_text import shorten_to_start

MOST_RUNS = 200
"""Jobs of one trial: its history stays far below the server's limit."""
SHARED_KEYS = ("model_calls", "tool_calls", "tokens", "cost")
"""Limits that are divided among the runs."""
MOST_SHOWN = 2000
MOST_ITEMS = 50


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
    parallel: int = Field(2, ge=1, le=50, strict=True)
    """Jobs at work at the same time."""
    seconds: int = Field(3600, ge=1, strict=True)
    """Time of one run. A run that waits for a person ends then, since nobody answers in a trial."""
    limits: TrialLimits = Field(default_factory=TrialLimits)

    @model_validator(mode="after")
    def _runs_are_valid(self) -> Self:
        if (jobs := self.runs * len(self.configurations)) > MOST_RUNS:
            raise ValueError(f"runs: {jobs} jobs in all; a trial has {MOST_RUNS} at most")
        if problem := self.share_problem:
            raise ValueError(problem)
        for name in self.configurations:
            if not name.isascii() or not name.isalnum():
                raise ValueError(f"configurations: {name!r}: expected letters and digits")
            JobStart.model_validate(self.job_start(name))
        return self

    @property
    def share_problem(self) -> str:
        jobs = self.runs * len(self.configurations)
        for key in SHARED_KEYS:
            if (limit := getattr(self.limits, key)) is not None and limit / jobs < LEAST[key]:
                return (
                    f"limits.{key}: {limit:,.10g} for {jobs} runs is less than the "
                    f"{LEAST[key]:,.10g} that each needs at least; raise it, or have fewer runs"
                )
        return ""

    @property
    def share(self) -> Budget:
        jobs = self.runs * len(self.configurations)
        shares: dict[str, float] = {}
        for key in SHARED_KEYS:
            if (limit := getattr(self.limits, key)) is not None:
                shares[key] = round(limit / jobs, 9) if key == "cost" else int(limit / jobs)
        return Budget.model_validate(shares)

    def job_start(self, name: str) -> dict[str, Any]:
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
    def bounded(self) -> "TrialStart":
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
