"""Jobs that have completed, read from their checkpoints."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pygit2

from activities.checkpoints import CheckpointMissing, Checkpoints, Root
from activities.job.snapshot import Snapshot
from activities.learning.precision import normalise_path
from config.schema.guards import Guard
from protocol.endings import JobResult

RESULT = "output/completion.json"
UNREADABLE = (CheckpointMissing, ValueError, OSError, pygit2.GitError)
"""What reading a repository may raise that is damaged, or is forgotten at this moment."""


@dataclass(frozen=True)
class FinishedJob:
    """A job that has completed."""

    completed_at: int
    """When, epoch seconds."""
    agent: str
    project: str
    """That it worked for, or nothing."""
    delivered: frozenset[str]
    rules: tuple[Guard, ...]
    """The guards it had."""

    def had_guard(self, guard: Guard) -> bool:
        """Whether it had this guard as it is, in whatever stage."""
        return any(rule.model_copy(update={"stage": guard.stage}) == guard for rule in self.rules)


def finished_jobs(root: Root, most: int | None = None) -> dict[str, FinishedJob]:
    """The completed jobs among those whose repositories are here, by the job's folder.

    Args:
        most: Jobs that are looked at, those changed last; None: all.
    """
    jobs = ((path.stem, read_finished_job(path)) for path in job_repositories(root)[:most])
    return {name: job for name, job in jobs if job}


def read_finished_job(repository: Path) -> FinishedJob | None:
    """The job of a repository; None if it has not completed, or cannot be read."""
    if not (repository / "refs").is_dir():
        return None
    try:
        store = Checkpoints(repository)
        commit = store.tags().get("completed")
        if not commit:
            return None
        snapshot = Snapshot.load(store, commit)
        result = JobResult.model_validate_json(snapshot.read_text(RESULT))
        [entry] = store.log(commit, 1)
    except UNREADABLE:
        return None
    delivered = frozenset(map(normalise_path, result.deliverables))
    project = snapshot.link.id if snapshot.link else ""
    rules = tuple(snapshot.config.rules)
    return FinishedJob(entry.timestamp, snapshot.config.name, project, delivered, rules)


def job_repositories(root: Root) -> list[Path]:
    """The repositories of jobs, those changed last first; without one that is no longer whole."""
    folder = root.path / ".longhaul" / "checkpoints"
    changed = {}
    for path in folder.glob("*.git"):
        with suppress(OSError):
            changed[path] = (path / "refs" / "tags").stat().st_mtime
    return sorted(changed, key=lambda path: changed[path], reverse=True)
