"""Request and result of the reflection on an attempt that failed."""

from __future__ import annotations

from pydantic import Field

from protocol.requests import CheckpointReply, JobPosition
from protocol.usage import Usage


class ReflectRequest(JobPosition):
    issue: str = ""
    """Why the attempt failed; empty when the call's issue says it."""
    call: int | None = None
    """Index of the `todo_rewind` call that has the issue."""


class ReflectReply(CheckpointReply):
    assumption: str = ""
    """The failed assumption in the model's words, bounded."""
    prevention: str = ""
    """What would prevent it."""
    generic: bool = False
    """Whether the model named no file, tool or step, even at the second try."""
    issue: str = ""
    context: int = 0
    """Tokens of the next request."""
    usage: Usage = Field(default_factory=Usage)
    failure: str = ""
    """Why there is no reflection, although calls for it may have been paid."""
