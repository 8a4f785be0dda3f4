"""Request and result of the workflow `Forget`."""

from __future__ import annotations

from pydantic import Field

from protocol.data_model import Data


class ForgetRequest(Data):
    """Input of the workflow."""

    job: str = Field("", max_length=1000)
    """Job id; empty for every job that has been closed for longer than its `keep_days`."""
    traces: bool = False
    """Whether to delete the job's traces too."""
    requirements: bool = False
    """Whether to delete its requirements too, decided or not."""


class ForgetResult(Data):
    """Result of the workflow."""

    jobs: list[str] = Field(default_factory=list)
    """The first hundred forgotten jobs."""
    count: int = 0
    notes: list[str] = Field(default_factory=list)
    """What was not deleted and why, one line each."""
