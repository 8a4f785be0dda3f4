"""Jobs that have completed, as their checkpoints tell."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from activities.checkpoints import CheckpointMissing, Checkpoints, Root
from activities.snapshot import Snapshot
from config.guard_schema import Guard
from protocol.endings import JobResult

RESULT = "output/completion.json"


@dataclass(frozen=True)
class Finished:
    """A job that has completed."""

    at: int
    """When, epoch seconds."""
    agent: str
    project: str
    """That it worked for, or nothing."""
    delivered: frozenset[str]
    rules: tuple[Guard, ...]
    """The guards it had."""

    def had(self, guard: Guard) -> bool:
        """Whether it had this guard as it is, in whatever stage."""
        return any(rule.model_copy(update={"stage": guard.stage}) == guard for rule in self.rules)


def finished(root: Root, most: int | None = None) -> dict[str, Finished]:
    """The completed jobs among those whose repositories are here, by the job's folder.

    Args:
        most: Jobs that are looked at, those changed last; None: all.
    """
    found = ((path.stem, finished_job(path)) for path in repositories(root)[:most])
    return {name: job for name, job in found if job}


def finished_job(repository: Path) -> Finished | None:
    """The job of a repository; None if it has not completed, or cannot be read."""
    if not (repository / "refs").is_dir():
        return None
    store = Checkpoints(repository)
    commit = store.tags().get("completed")
    if not commit:
        return None
    try:
        snapshot = Snapshot.load(store, commit)
        result = JobResult.model_validate_json(snapshot.text(RESULT))
        [entry] = store.log(commit, 1)
    except (CheckpointMissing, ValueError):
        return None
    delivered = frozenset(path.strip("/") for path in result.deliverables)
    project = snapshot.link.id if snapshot.link else ""
    rules = tuple(snapshot.config.rules)
    return Finished(entry.at, snapshot.config.name, project, delivered, rules)


def repositories(root: Root) -> list[Path]:
    """The repositories of jobs, those changed last first."""
    folder = root.path / ".longhaul" / "checkpoints"
    found = [path for path in folder.glob("*.git") if (path / "refs").is_dir()]
    return sorted(found, key=lambda path: (path / "refs" / "tags").stat().st_mtime, reverse=True)
