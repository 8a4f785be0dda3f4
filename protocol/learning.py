"""The scheduled pass of learning, as workflow and activity know it."""

from __future__ import annotations

from pydantic import Field

from protocol.state import Data


class LearnRequest(Data):
    """Whose jobs are learned from."""

    root: str = ""
    """Id of the workspaces root; empty: that of whichever worker takes it."""


class Learnt(Data):
    """What a pass did."""

    lines: list[str] = Field(default_factory=list)
