"""Shows what the work on a repository changed, in git's formats."""

from dataclasses import dataclass
from typing import Literal

import pygit2
from pygit2.enums import DiffOption, DiffStatsFormat

from activities.checkpoints import Checkpoints, Root
from activities.job.snapshot import Snapshot
from activities.projects.project_repository import ProjectRepository, project_repository_path
from activities.source_repository.job_branch import job_branch_tree
from cli.job_files.checkpoint_reader import CheckpointPlaces
from cli.output import UserError
from cli.projects.project_files import open_project_files, project_files_tip
from engine.root_location import workspaces_root
from protocol.repository_link import RepositoryLink

Form = Literal["patch", "stat", "names"]
STAT_WIDTH = 80


@dataclass(frozen=True)
class RepositoryDiff:
    """The difference between the start of the work and its current state."""

    base: str
    """A commit, or the empty tree if there was none."""
    tip: str
    diff: pygit2.Diff

    @property
    def paths(self) -> list[str]:
        return [delta.new_file.path for delta in self.diff.deltas]

    def render(self, form: Form) -> bytes:
        """Render the difference in one of git's formats."""
        if form == "names":
            return "".join(f"{path}\n" for path in self.paths).encode("utf-8", "surrogateescape")
        if form == "stat":
            return self.diff.stats.format(DiffStatsFormat.FULL, STAT_WIDTH).encode()
        return b"".join(patch.data for patch in self.diff if patch is not None)


def diff_job_repository(job: str, store: Checkpoints, commit: str) -> RepositoryDiff:
    """Return the changes of a job up to one of its checkpoints.

    Raises UserError: it does not work on a repository, or the repository is not on this root.
    """
    snapshot = Snapshot.load(store, commit)
    link = snapshot.repository
    if link is None:
        raise UserError(
            f"{job} does not work on a repository: name two moments, such as "
            f"`starter.py diff {job} 2 now`"
        )
    repository = _job_repository(link)
    return _diff_repository_commits(
        repository, link.commit, job_branch_tree(repository, snapshot, link)
    )


def diff_project_repository(project: str, places: CheckpointPlaces) -> RepositoryDiff:
    """Return the changes of a project up to its newest accepted work. Raises UserError."""
    repository = open_project_files(project, places)
    head, origin = project_files_tip(repository, state=False), repository.origin
    if origin is not None:
        return _diff_repository_commits(repository, origin.commit, head)
    return _diff_repository_commits(repository, str(repository.git.TreeBuilder().write()), head)


def _job_repository(link: RepositoryLink) -> ProjectRepository:
    path = project_repository_path(Root.open(workspaces_root(), create=False), link.owner)
    if not path.exists():
        raise UserError(f"its git repository is not at {path}; run this on the host that has it")
    return ProjectRepository(path)


def _diff_repository_commits(repository: ProjectRepository, base: str, tip: str) -> RepositoryDiff:
    before, after = (repository.git[each].peel(pygit2.Tree) for each in (base, tip))
    diff = before.diff_to_tree(after, flags=DiffOption.INDENT_HEURISTIC)
    diff.find_similar()
    return RepositoryDiff(base, tip, diff)
