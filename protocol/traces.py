"""Traces: what enforcement saw, and what people said. Kept by the store, beyond the job's end."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from protocol.state import Data

TraceType = Literal["violation", "correction", "decision", "approval", "outcome"]
Source = Literal["guard", "gate", "hook", "person", "detector", "agent"]
MOST_CHARACTERS = 400
"""Of each text of a trace."""
QUESTION_PREFIX = "The agent asked: "
"""With which the trace of an answer begins; its question follows."""
MOST_AT_A_TIME = 25
"""Traces that are handed over together."""
MOST_KEPT = 100
"""Traces that a job or a project keeps while the store is away; with more it waits."""


class Trace(Data):
    """One recorded decision, violation, correction, approval or outcome."""

    key: str
    """Run id of the workflow and a number: the store takes each key once."""
    type: TraceType
    source: Source
    guard: str = ""
    """Name of the guard, hook, gate or pattern."""
    tool: str = ""
    path: str = ""
    """The file that was meant, if one was."""
    stage: Literal["", "experiment"] = ""
    """`experiment`: nothing was refused, a guard on trial would have."""
    what_happened: str
    what_was_correct: str = ""
    why: str = ""
    step: int
    phase: int
    todo: str = ""
    """The current todo's text."""
    commit: str
    """The checkpoint at which it happened."""
    at: int
    """Epoch seconds."""


class StoreTracesRequest(Data):
    """What a job hands to the store at a time."""

    root: str
    remote: str = ""
    agent: str
    task: str
    """The job's title."""
    project: str = ""
    traces: list[Trace] = Field(default_factory=list)


class StoreTracesReply(Data):
    """How many were new to the store."""

    count: int
