"""What is asked of the workflow `Forget`, and what it did."""

from __future__ import annotations

from pydantic import Field

from protocol.state import Data


class ForgetRequest(Data):
    """Input of the workflow."""

    job: str = Field("", max_length=1000)
    """Empty: all that are closed for longer than their `keep_days`."""
    traces: bool = False
    """Whether the job's traces go as well."""
    requirements: bool = False
    """Whether its requirements go as well, decided or not."""


class ForgetResult(Data):
    """What was done."""

    jobs: list[str] = Field(default_factory=list)
    """Those that were forgotten, the first hundred."""
    count: int = 0
    notes: list[str] = Field(default_factory=list)
    """What stays and why, a line each."""
