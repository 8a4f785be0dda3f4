"""Request and result of a job's start, and of changes to its model settings."""

from typing import Any

from pydantic import Field

from protocol.data_model import Data
from protocol.handoffs import ProjectLink
from protocol.job_state import JobState
from protocol.limits import JobLimits
from protocol.notices import Notice
from protocol.notification_requests import Notifying
from protocol.payloads import Fork
from protocol.publishing import Publish
from protocol.repository_start import PinnedSource, RepositoryStart
from protocol.requests import CheckpointReply, JobPosition
from protocol.tools import ToolRoute


class CancelStartRequest(Data):
    """Requests the cancellation of a job that has not begun; also the reply."""

    reason: str


class PrepareRequest(Data):
    agent: str = ""
    """The agent's name; empty only for a fork, which keeps the agent of the original job."""
    instructions: str = ""
    documents: list[str] = Field(default_factory=list)
    brief: list[str] = Field(default_factory=list)
    """Further documents, whose statements are items as well."""
    items: list[str] = Field(default_factory=list)
    set: dict[str, object] = Field(default_factory=dict)
    fork: Fork | None = None
    repository: RepositoryStart | None = None
    publish: Publish | None = None
    project: ProjectLink | None = None
    team: str = ""
    by: str = ""
    """Who starts it, as far as the start says."""
    chain: str = ""
    """First run id of the workflow: distinguishes a retry or reset from a new job with the same
    id."""


class PrepareReply(CheckpointReply):
    root: str
    remote: str = ""
    agent: str
    model: str
    title: str
    state: JobState
    tools: list[ToolRoute]
    limits: JobLimits
    context: int = 0
    notifying: Notifying | None = None
    has_repository: bool = False
    origin: PinnedSource | None = None
    publish: Publish | None = None
    notices: list[Notice] = Field(default_factory=list)
    search_attributes: list[str] = Field(default_factory=list)
    """Our search attributes that the server has registered; only those may be set."""


class SetModelRequest(JobPosition):
    """New model settings from a person for a waiting job."""

    set: dict[str, Any]
    """New values by dotted key."""


class SetModelReply(CheckpointReply):
    model: str
    limits: JobLimits
    tools: list[ToolRoute] = Field(default_factory=list)
    """The routes of all tools if a tool came or went with the change, else empty."""
    changes: list[str] = Field(default_factory=list)
