"""Requests for the branch of a job or project to be pushed."""

from __future__ import annotations

from pydantic import Field

from protocol.project_requests import ProjectRequest
from protocol.repository import Publish
from protocol.requests import JobPosition


class PublishRequest(JobPosition):
    call: int
    """The call of `job_complete`, which says what was done."""
    starts: list[str] = Field(default_factory=list)
    """Start checkpoints of the phases, in order."""


class PublishProjectRequest(ProjectRequest):
    head: str
    publish: Publish
