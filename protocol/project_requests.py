"""Requests and results of a project's activities."""

from typing import Any

from pydantic import Field

from protocol.agent_reports import FeatureReport, Routing, TesterVerdict
from protocol.data_model import Data
from protocol.handoffs import Handoff
from protocol.notices import Notice
from protocol.notification_requests import Notifying
from protocol.project_start import FormName, ProjectStart
from protocol.project_units import ProjectResult
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
    commit: str
    state: str
    """The first commit of the project's own files."""
    remote: str = ""
    scope: list[ScopeItem] = Field(default_factory=list)
    search_attributes: list[str] = Field(default_factory=list)
    notifying: Notifying | None = None
    notices: list[Notice] = Field(default_factory=list)


class ProjectRequest(Data):
    root: str
    remote: str = ""
    form: FormName


class TakeWorkRequest(ProjectRequest):
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
    commit: str
    branch: str = ""
    problems: list[str] = Field(default_factory=list)
    report: str = ""
    """The job's own words on its work."""
    added: str = ""
    """What the system says of it: changed files and unresolved points."""
    features: FeatureReport | None = None
    routing: Routing | None = None
    verdict: TesterVerdict | None = None
    proofs: list[Proof] = Field(default_factory=list)
    """The system's own runs, and tool results for checks that no command can perform."""
    changed: list[str] = Field(default_factory=list)
    tests: list[str] = Field(default_factory=list)
    test_changes: str = ""
    """How tests differ that are older than the job, as a diff; its beginning."""
    given_up: bool = False
    """Whether a coder says that it cannot be done; its words are the first problems."""
    left_items: dict[int, str] = Field(default_factory=dict)
    """Items that the job did not do: index in its scope to its reason."""
    usage: Usage = Field(default_factory=Usage)

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
    commit: str
    """The new head; with conflicts, a commit with conflict markers."""
    conflicts: list[str] = Field(default_factory=list)
    """Conflicting paths, with a note where the file has no conflict markers."""


class WriteStateRequest(ProjectRequest):
    state: str
    units: list[dict[str, Any]]
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
