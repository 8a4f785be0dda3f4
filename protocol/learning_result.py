"""Result of the scheduled learning pass, shared by workflow and activity."""

from __future__ import annotations

from pydantic import Field

from protocol.data_model import Data


class LearningResult(Data):
    """What a learning pass did."""

    lines: list[str] = Field(default_factory=list)
