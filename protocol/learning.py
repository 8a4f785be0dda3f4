"""The scheduled pass of learning, as workflow and activity know it."""

from __future__ import annotations

from pydantic import Field

from protocol.state import Data


class LearningResult(Data):
    """What a pass did."""

    lines: list[str] = Field(default_factory=list)
