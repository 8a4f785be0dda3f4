"""Requests to push the branch of a job or project."""

from __future__ import annotations

from pydantic import Field

from protocol.project_requests import ProjectRequest
from protocol.repository import Publish
from protocol.requests import JobPosition


class PublishRequest(JobPosition):
    call: int
    """Index of the `job_complete` call, which summarizes the work."""
    starts: list[str] = Field(default_factory=list)
    """Start checkpoints of the phases, in order."""


class PublishProjectRequest(ProjectRequest):
    head: str
    publish: Publish
