"""Traces of enforcement and of people's remarks, kept in the store, and what is learned of them."""

from typing import Literal

from pydantic import Field

from protocol.data_model import Data

TraceType = Literal["violation", "correction", "decision", "approval", "outcome"]
Source = Literal["guard", "gate", "hook", "person", "detector", "agent"]
MOST_CHARACTERS = 400
CLARIFICATION = "clarification"
"""The `guard` of the trace of a person's answer to a question."""
MOST_AT_A_TIME = 25
MOST_KEPT = 100
"""Most traces that a job or project keeps while the store is unavailable; with more it waits."""


class Trace(Data):
    """One recorded decision, violation, correction, approval or outcome."""

    key: str
    type: TraceType
    source: Source
    guard: str = ""
    """Name of the guard, hook, gate or pattern."""
    tool: str = ""
    path: str = ""
    stage: Literal["", "experiment"] = ""
    """`experiment` if a guard on trial would have refused but nothing was refused."""
    what_happened: str
    what_was_correct: str = ""
    why: str = ""
    step: int
    phase: int
    todo: str = ""
    commit: str
    at: int


class StoreTracesRequest(Data):
    root: str
    remote: str = ""
    agent: str
    task: str
    project: str = ""
    traces: list[Trace] = Field(default_factory=list)


class StoreTracesReply(Data):
    """The number of traces that were new to the store."""

    count: int


class LearningResult(Data):
    lines: list[str] = Field(default_factory=list)
