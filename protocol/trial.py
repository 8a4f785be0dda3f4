"""A trial: the same job under several configurations, several times each."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from protocol.payloads import JobStart
from protocol.requests import Usage
from protocol.state import Data

MOST_RUNS = 200
"""Jobs of one trial: its history stays far below the server's limit."""
RunStatus = Literal["pending", "running", "completed", "failed", "cancelled", "late"]


class Configuration(Data):
    """What differs from the trial's start."""

    agent: str = ""
    instructions: str = ""
    set: dict[str, Any] = Field(default_factory=dict)


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
