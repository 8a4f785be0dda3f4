"""Why a job, project or trial waits, and what a person can do about it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from protocol.data_model import Data

WaitReason = Literal[
    "clarification",
    "approval",
    "review",
    "stuck",
    "rewinds",
    "budget",
    "credentials",
    "endpoint",
    "tool",
    "storage",
    "dependency",
    "paused",
]


class WaitState(Data):
    """Why a job waits, and what a person should do about it, in one sentence."""

    reason: WaitReason
    message: str
    remedy: str
    about: dict[str, str] = Field(default_factory=dict)
    """Text of the agent that people must see verbatim."""
    trying: bool = False
    """Whether the job keeps retrying on its own meanwhile."""


class WaitTimer(Data):
    """A running `wait`, in epoch seconds."""

    started: float
    ends: float

    @property
    def seconds(self) -> int:
        """Its length in seconds, as reported to the model."""
        return round(self.ends - self.started)
