"""What a tool is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.checkpoints import Files, Root, parse_path
from activities.checkpoints.entries import with_entry
from activities.job.conversation import Conversation
from config.schema.agent import AgentConfig
from protocol.handoffs import ProjectLink
from protocol.repository import RepositoryLink
from protocol.requests import Pending
from protocol.state import JobState


def no_heartbeat() -> None:
    """For tools that run as local activities, which need none."""


@dataclass(frozen=True)
class ViewedImage:
    """What the model is shown of an image."""

    data: bytes
    mime: str
    pointer: str
    """What it is in words."""
    tokens: int


@dataclass
class ToolContext:
    """One call's view of the job. A tool changes `files` by assigning the new value.

    The runner compares `files` before and after and refuses the call as a whole when it
    touched what the system owns, so no tool has to check ownership itself.
    """

    files: Files
    reads: Files
    """For each path read in this phase, the content as it was then."""
    changes: Files
    """For each path changed since the job began, the number of the step that last did."""
    state: JobState
    config: AgentConfig
    conversation: Conversation
    """Of the running phase."""
    history: Files
    """The conversations of earlier phases, a folder each, by number."""
    root: Root
    """Of the worker: where stores shared between jobs lie by default."""
    job: str
    """The job's id."""
    key: str
    """Idempotency key of this call: retries share it; reset, rewind and fork do not."""
    activity_id: str = ""
    """The activity that makes the call. A call that is resumed is made by another activity."""
    attempt: int = 1
    """Which one this is, where those before may have been made on another host."""
    project_id: str = ""
    """The project it works for, if it does."""
    project_link: ProjectLink | None = None
    """What that handed over."""
    repository: RepositoryLink | None = None
    """What the job has of a repository."""
    earlier_jobs: Sequence[str] = ()
    """Jobs of the project that had its task before it."""
    commit: str = ""
    """The checkpoint that it starts from."""
    time_ms: int = 0
    """When the call was scheduled, epoch milliseconds by the server: a later call, a later time."""
    command_failure: str = ""
    """What the model has to read in the result before it goes on: a command did not succeed."""
    heartbeat: Callable[[], None] = no_heartbeat
    waited_seconds: int = 0
    """For `wait`: how many seconds it was."""
    pending: Pending | None = None
    """How far the call was, where it is under way."""
    held: dict[str, Any] = field(default_factory=dict)
    """What the turn before left for this one."""
    images: list[ViewedImage] = field(default_factory=list)
    """What the model is shown beside the result, in order."""
    answer: str = ""
    """For `delegate`: what the helper said."""
    gives_up: bool = False
    """Whether the task of the call is not wanted any more."""

    def note_read(self, path: str) -> None:
        """Remember the file as it is now: an edit is refused when it changed since."""
        parts = parse_path(path)
        self.reads = with_entry(self.reads, "/".join(parts), self.files.tree_entry(parts))
