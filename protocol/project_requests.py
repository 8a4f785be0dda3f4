"""Requests and results of a project's activities."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from protocol.agent_reports import FeatureReport, Routing, TesterVerdict
from protocol.data_model import Data
from protocol.handoffs import Handoff
from protocol.notices import Notice
from protocol.notification_requests import Notifying
from protocol.project import ProjectResult
from protocol.project_forms import FormName
from protocol.project_start import ProjectStart
from protocol.proof import Proof
from protocol.publishing import Publish
from protocol.repository_start import PinnedSource
from protocol.scope_ledger import ScopeItem
from protocol.todo_list import DoneWhen
from protocol.usage import Usage


class ProjectPrepareRequest(Data):
    start: ProjectStart
    chain: str


class ProjectPrepareReply(Data):
    root: str
    repository: str
    title: str
    origin: PinnedSource | None = None
    """The repository or folder that it begins from."""
    commit: str
    state: str
    """The first commit of the project's own files."""
    remote: str = ""
    """Address of the remote that its repository is pushed to; empty without one."""
    scope: list[ScopeItem] = Field(default_factory=list)
    search_attributes: list[str] = Field(default_factory=list)
    notifying: Notifying | None = None
    notices: list[Notice] = Field(default_factory=list)
    """Notices for people about unavailable features, one line each."""


class ProjectRequest(Data):
    """A place in a project's repository."""

    root: str
    remote: str = ""
    form: FormName


class TakeWorkRequest(ProjectRequest):
    """Inspect the work of a finished child job."""

    job: str
    checkpoint: str
    folder: str
    handoff: Handoff
    tokens: int
    head: str
    success: list[DoneWhen] = Field(default_factory=list)
    room: dict[str, float] = Field(default_factory=dict)
    """What the project's limits leave for shortening its summary, by limit."""


class ChildWork(Data):
    """The work of a child job, as the system inspected it."""

    commit: str
    changed: list[str] = Field(default_factory=list)
    """Paths that the job changed; the first few."""
    problems: list[str] = Field(default_factory=list)
    """Why the work cannot be accepted."""
    report: str = ""
    """The job's own words on its work."""
    added: str = ""
    """What the system says of it: changed files and unresolved points."""
    features: FeatureReport | None = None
    routing: Routing | None = None
    verdict: TesterVerdict | None = None
    proofs: list[Proof] = Field(default_factory=list)
    """The system's own runs, and tool results for checks that no command can perform."""
    tests: list[str] = Field(default_factory=list)
    """Paths of tests that a tester wrote; the first few."""
    left_items: dict[int, str] = Field(default_factory=dict)
    """Items that the job did not do: index in its scope to its reason."""
    usage: Usage = Field(default_factory=Usage)
    """Usage of shortening its summary."""

    @property
    def summary(self) -> str:
        return self.report + self.added


class MergeRequest(ProjectRequest):
    job: str
    head: str
    commit: str
    message: str
    """What was done; the message of the squashed commit."""


class MergeReply(Data):
    """Result of merging accepted work into the project's main line."""

    commit: str
    """The new head; with conflicts, a commit with conflict markers."""
    conflicts: list[str] = Field(default_factory=list)
    """Conflicting paths, with a note where the file has no conflict markers."""


class WriteStateRequest(ProjectRequest):
    """Write the project's state file."""

    state: str
    """The newest commit of the project's own files."""
    units: list[dict[str, Any]]
    """The units that changed."""
    scope: list[ScopeItem] = Field(default_factory=list)
    why: str


class CloseProjectRequest(ProjectRequest):
    head: str
    state: str
    result: ProjectResult
    request_cancel: bool = False


class PublishProjectRequest(ProjectRequest):
    head: str
    publish: Publish
