"""Traces of enforcement and of people's remarks; the store keeps them after the job's end."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from protocol.data_model import Data

TraceType = Literal["violation", "correction", "decision", "approval", "outcome"]
Source = Literal["guard", "gate", "hook", "person", "detector", "agent"]
MOST_CHARACTERS = 400
"""Most characters of each text of a trace."""
CLARIFICATION = "clarification"
"""The `guard` of the trace of a person's answer to a question."""
MOST_AT_A_TIME = 25
"""Most traces sent to the store at once."""
MOST_KEPT = 100
"""Most traces that a job or project keeps while the store is unavailable; with more it waits."""


class Trace(Data):
    """One recorded decision, violation, correction, approval or outcome."""

    key: str
    """Run id of the workflow and a number; the store accepts each key once."""
    type: TraceType
    source: Source
    guard: str = ""
    """Name of the guard, hook, gate or pattern."""
    tool: str = ""
    path: str = ""
    """The file concerned; empty without one."""
    stage: Literal["", "experiment"] = ""
    """`experiment` if a guard on trial would have refused but nothing was refused."""
    what_happened: str
    what_was_correct: str = ""
    why: str = ""
    step: int
    phase: int
    todo: str = ""
    """Text of the current todo."""
    commit: str
    """The checkpoint at that time."""
    at: int
    """Epoch seconds."""


class StoreTracesRequest(Data):
    """Traces that a job sends to the store at once."""

    root: str
    remote: str = ""
    agent: str
    task: str
    """The job's title."""
    project: str = ""
    traces: list[Trace] = Field(default_factory=list)


class StoreTracesReply(Data):
    """The number of traces that were new to the store."""

    count: int
