"""Requests and results of a project's activities."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from protocol.handoffs import FeatureReport, Handoff, Routing, TesterVerdict
from protocol.notifications import Notifying
from protocol.project import ProjectResult
from protocol.project_forms import FormName
from protocol.project_start import ProjectStart
from protocol.proof import Proof
from protocol.requests import Usage
from protocol.state import Data, DoneWhen, ScopeItem


class ProjectPrepareRequest(Data):
    start: ProjectStart
    chain: str


class ProjectPrepareReply(Data):
    root: str
    repository: str
    title: str
    commit: str
    state: str
    """The first commit of the project's own files."""
    scope: list[ScopeItem] = Field(default_factory=list)
    search_attributes: list[str] = Field(default_factory=list)
    notifying: Notifying | None = None
    notices: list[str] = Field(default_factory=list)
    """What it does without, a line each, for people."""


class ProjectRequest(Data):
    """A place in a project's repository."""

    root: str
    form: FormName


class TakeWorkRequest(ProjectRequest):
    """Look into the work of a child job that ended."""

    job: str
    checkpoint: str
    folder: str
    handoff: Handoff
    tokens: int
    head: str
    success: list[DoneWhen] = Field(default_factory=list)
    room: dict[str, float] = Field(default_factory=dict)
    """What the project's limits leave for shortening its summary, by their names."""


class ChildWork(Data):
    """What a child job made, as the system finds it."""

    commit: str
    changed: list[str] = Field(default_factory=list)
    """Paths that differ from where it began; the first few."""
    problems: list[str] = Field(default_factory=list)
    """Why the work cannot be accepted."""
    summary: str = ""
    features: FeatureReport | None = None
    routing: Routing | None = None
    verdict: TesterVerdict | None = None
    proofs: list[Proof] = Field(default_factory=list)
    """What the system ran, and the tool results that stand where no command can."""
    tests: list[str] = Field(default_factory=list)
    """Paths of tests that a tester wrote; the first few."""
    left_items: dict[int, str] = Field(default_factory=dict)
    """Of the items that the job was given, by their place, those it did not do, with its reason."""
    usage: Usage = Field(default_factory=Usage)
    """What shortening its summary took."""


class MergeRequest(ProjectRequest):
    job: str
    head: str
    commit: str
    message: str
    """What was done, for the one commit that it becomes."""


class MergeReply(Data):
    """Accepted work in the project's main line, or where it collides with what is there."""

    commit: str
    """The new head; with conflicts, a commit with both versions of the places."""
    conflicts: list[str] = Field(default_factory=list)
    """Paths, with what is there where that is not a text with marks."""


class WriteStateRequest(ProjectRequest):
    """Write the project's state file."""

    state: str
    """The newest commit of the project's own files."""
    units: list[dict[str, Any]]
    """Those that changed."""
    scope: list[ScopeItem] = Field(default_factory=list)
    why: str


class CloseProjectRequest(ProjectRequest):
    head: str
    state: str
    result: ProjectResult
    request_cancel: bool = False
