"""Reads a project's repository: its product, its own files, and its commits."""

from collections.abc import Iterator
from dataclasses import dataclass

import pygit2

from activities import checkpoints
from activities.projects.project_remote import fetch_project_commits
from activities.projects.project_repository import MAIN, ProjectRepository, project_repository_path
from cli.job_files.checkpoint_reader import CheckpointPlaces
from cli.output import UserError, print_note
from engine.root_location import workspaces_root
from protocol.project_units import STATE


@dataclass(frozen=True)
class CommitLine:
    """A commit of the main line."""

    id: str
    timestamp: int
    """Epoch seconds."""
    message: str


def open_project_files(project: str, places: CheckpointPlaces) -> ProjectRepository:
    """Return a project's repository in this environment's workspaces root.

    Args:
        project: Its id.
        places: What it reports; missing commits are fetched from its remote, if any.

    Raises:
        UserError: It is not there.
    """
    try:
        root = checkpoints.Root.open(workspaces_root(), create=False)
        try:
            return fetch_project_commits(root, project, places.remote, *places.tips)
        except (checkpoints.GitNotInstalled, checkpoints.RemoteUnavailable) as error:
            print_note(
                f"not all commits are here, and the remote {places.remote} gives none: {error}"
            )
            return ProjectRepository(project_repository_path(root, project))
    except (checkpoints.RootError, checkpoints.CheckpointMissing) as error:
        raise UserError(f"{error} If it lives elsewhere, set LONGHAUL_WORKSPACES.") from None


def project_files_tip(repository: ProjectRepository, *, state: bool) -> str:
    """Return the newest commit of the product, or of the project's own files."""
    branch = f"refs/heads/{STATE if state else MAIN}"
    if branch not in repository.git.references:
        raise UserError("the project has nothing yet")
    return str(repository.git.references[branch].target)


def read_project_path(
    repository: ProjectRepository, commit: str, path: str
) -> list[tuple[str, int]] | bytes:
    """Return paths and sizes of the files below a folder, or the content of a file.

    Raises:
        UserError: There is no such path.
    """
    tree = repository.get_commit(commit).tree
    try:
        entry = tree[path.rstrip("/")] if path.strip("/") else tree
    except (KeyError, ValueError):
        raise UserError(f"there is no {path} in the project") from None
    if isinstance(entry, pygit2.Blob):
        return bytes(entry.data)
    if not isinstance(entry, pygit2.Tree):
        raise UserError(f"{path} is a repository of its own")
    return list(_project_files_below(entry, f"{path.strip('/')}/" if path.strip("/") else ""))


def _project_files_below(tree: pygit2.Tree, above: str) -> Iterator[tuple[str, int]]:
    for entry in tree:
        if isinstance(entry, pygit2.Tree):
            yield from _project_files_below(entry, f"{above}{entry.name}/")
        elif isinstance(entry, pygit2.Blob):
            yield f"{above}{entry.name}", entry.size


def read_project_commits(repository: ProjectRepository, commit: str) -> list[CommitLine]:
    """Return the main line's commits, oldest first: one per accepted piece of work."""
    walked = repository.git.walk(repository.get_commit(commit).id)
    walked.simplify_first_parent()
    return [CommitLine(str(entry.id), entry.commit_time, entry.message) for entry in walked][::-1]
