"""Completed jobs, read from their checkpoints."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pygit2

from activities.checkpoints import CheckpointMissing, Checkpoints, Root
from activities.checkpoints.workspaces_root import list_job_repositories
from activities.job.snapshot import Snapshot
from activities.learning.guard_precision import normalise_trace_path
from config.schema.guards import Guard
from protocol.endings import COMPLETION_FILE, JobResult

UNREADABLE = (CheckpointMissing, ValueError, OSError, pygit2.GitError)
"""Errors of reading a repository that is damaged or being forgotten."""


@dataclass(frozen=True)
class FinishedJob:
    """A completed job."""

    completed_at: int
    """Time of completion, epoch seconds."""
    agent: str
    project: str
    """The project that it worked for, or empty."""
    delivered: frozenset[str]
    rules: tuple[Guard, ...]
    """Its guards."""

    def had_guard(self, guard: Guard) -> bool:
        """Whether it had exactly this guard, in whatever stage."""
        return any(rule.model_copy(update={"stage": guard.stage}) == guard for rule in self.rules)


def finished_jobs(root: Root, most: int | None = None) -> dict[str, FinishedJob]:
    """Return the completed jobs with repositories here, by the job's folder.

    Args:
        most: Read at most this many jobs, the last changed first; None for all.
    """
    jobs = ((path.stem, read_finished_job(path)) for path in list_job_repositories(root)[:most])
    return {name: job for name, job in jobs if job}


def read_finished_job(repository: Path) -> FinishedJob | None:
    """Return a repository's job; None if it is not completed or cannot be read."""
    if not (repository / "refs").is_dir():
        return None
    try:
        store = Checkpoints(repository)
        commit = store.tags().get("completed")
        if not commit:
            return None
        snapshot = Snapshot.load(store, commit)
        result = JobResult.model_validate_json(snapshot.read_text(COMPLETION_FILE))
        [entry] = store.log(commit, 1)
    except UNREADABLE:
        return None
    delivered = frozenset(map(normalise_trace_path, result.deliverables))
    project = snapshot.link.id if snapshot.link else ""
    rules = tuple(snapshot.config.rules)
    return FinishedJob(entry.timestamp, snapshot.config.name, project, delivered, rules)
