"""Request and result of the reflection on an attempt that failed."""

from __future__ import annotations

from pydantic import Field

from protocol.requests import CheckpointReply, JobPosition, Usage


class ReflectRequest(JobPosition):
    issue: str = ""
    """What made it fail; empty where the call at hand says it."""
    call: int | None = None
    """Place of the call of `todo_rewind` whose issue it is."""


class ReflectReply(CheckpointReply):
    assumption: str = ""
    """Which assumption failed, in the model's words, bounded."""
    prevention: str = ""
    """What would prevent it."""
    generic: bool = False
    """Whether the model named no file, tool or step, although it was asked again."""
    issue: str = ""
    context: int = 0
    """Tokens of the next request."""
    usage: Usage = Field(default_factory=Usage)
    failure: str = ""
    """Why there is none, although some of it was paid for."""
