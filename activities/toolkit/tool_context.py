"""The context of a tool call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from activities.checkpoints import Files, Root, parse_path
from activities.checkpoints.entries import with_entry
from activities.job.conversation import Conversation
from activities.job.snapshot import Snapshot
from activities.runtime.activity_info import activity_job_id, activity_schedule_ms
from config.schema.agent import AgentConfig
from protocol.handoffs import ProjectLink
from protocol.job_state import JobState
from protocol.repository_link import RepositoryLink
from protocol.requests import Pending


@dataclass(frozen=True)
class ViewedImage:
    data: bytes
    mime: str
    pointer: str
    tokens: int


@dataclass
class ToolContext:
    """The job as one call sees it. A tool changes `files` by assigning the new value.

    The runner compares `files` before and after, and refuses the whole call if it changed a
    protected path, so tools need not check ownership.
    """

    files: Files
    reads: Files
    """For each path read in this phase, its content at that time."""
    changes: Files
    """For each path changed since the job began, the number of the step that last changed it."""
    state: JobState
    config: AgentConfig
    conversation: Conversation
    history: Files
    """Conversations of earlier phases, one folder each, by number."""
    root: Root
    """The worker's root, where shared stores are by default."""
    job: str
    key: str
    """Idempotency key of this call: retries share it; reset, rewind and fork do not."""
    activity_id: str = ""
    """The activity that makes the call. A call that is resumed is made by another activity."""
    attempt: int = 1
    """Attempt number, if earlier attempts may have run on another host; else 1."""
    has_run: bool = False
    """Whether the call has run before, perhaps on another host, and a person was asked then."""
    project_id: str = ""
    project_link: ProjectLink | None = None
    repository: RepositoryLink | None = None
    earlier_jobs: Sequence[str] = ()
    """Earlier jobs of the project with the same task."""
    commit: str = ""
    """The checkpoint that the call starts from."""
    time_ms: int = 0
    """When the call was scheduled, in epoch milliseconds by the server; grows from call to call."""
    command_failure: str = ""
    """How a failed command ended, which the model has to read before its next calls run."""
    waited_seconds: int = 0
    pending: Pending | None = None
    """Progress of a call that is not finished."""
    held: dict[str, Any] = field(default_factory=dict)
    """State that the previous turn of the call left for this one."""
    images: list[ViewedImage] = field(default_factory=list)
    """Images to show to the model after the result, in order."""
    answer: str = ""
    gives_up: bool = False
    """Whether to cancel the call's task."""

    @classmethod
    def of(cls, snapshot: Snapshot, root: Root, key: str) -> ToolContext:
        """Return the context of a call from this checkpoint, with a state of its own."""
        link = snapshot.link
        return cls(
            files=snapshot.files,
            reads=snapshot.reads,
            changes=snapshot.changes,
            # A copy, so that a call that fails half way leaves the state unchanged.
            state=snapshot.state.deep_copy(),
            config=snapshot.config,
            conversation=snapshot.conversation,
            history=snapshot.history,
            root=root,
            job=activity_job_id(),
            key=key,
            project_id=link.id if link else "",
            project_link=link,
            repository=snapshot.repository,
            earlier_jobs=link.earlier_jobs if link else (),
            commit=snapshot.commit,
            time_ms=activity_schedule_ms(),
        )

    def note_read(self, path: str) -> None:
        """Record the file's current version as read: an edit is refused if it has changed since."""
        parts = parse_path(path)
        self.reads = with_entry(self.reads, "/".join(parts), self.files.tree_entry(parts))
