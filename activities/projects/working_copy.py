"""Read-only git for an agent's working copy: status, diff, log and blame of the product.

The git folder is created beside the command's working copy and shown read-only, since the system
makes the commits. It is in no checkpoint.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pygit2

from activities.checkpoints import Root
from activities.projects.project_repository import MAIN, ProjectRepository, project_repository_path
from protocol.handoffs import ProjectLink
from protocol.repository_link import RepositoryLink

SHOWN_GIT, OBJECTS = "/git", "/git-objects"
"""Paths in the sandbox of the git folder and of the project's objects."""
CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = false
[diff]
	ignoreSubmodules = all
"""
"""Submodules are not fetched, which the agent has not to answer for."""


@dataclass(frozen=True)
class WorkingCopyOrigin:
    """The repository of a product, its folder, and the commit that was handed over."""

    owner: str
    folder: str
    commit: str

    @classmethod
    def from_links(
        cls, link: ProjectLink | None, repository: RepositoryLink | None
    ) -> WorkingCopyOrigin | None:
        """Return the place of a project's product, else of the job's repository; None without."""
        if link:
            return cls(link.id, link.folder, link.handoff.inputs.commit)
        if repository:
            return cls(repository.owner, repository.folder, repository.commit)
        return None


@contextmanager
def working_copy_git(
    root: Root, place: WorkingCopyOrigin | None, workspace: Path, *, confined: bool
) -> Iterator[Mapping[str, Path]]:
    """Provide git for the product in a command's workspace during the context.

    Yields the folders that the sandbox has to show. Without a sandbox, changes to the git folder
    are discarded.
    """
    product = workspace / place.folder if place else workspace
    mark = product / ".git"
    # A link that leads nowhere is no file, and would be followed when it is written.
    if place is None or product.is_symlink() or not product.is_dir() or os.path.lexists(mark):
        yield {}
        return
    path = project_repository_path(root, place.owner)
    if not path.exists():  # on a lost host, and in no remote
        yield {}
        return
    repository = ProjectRepository(path)
    if place.commit not in repository.git:
        yield {}
        return
    objects = repository.path / "objects"
    git_folder = _make_working_copy_git(
        repository, place.commit, workspace.parent, confined=confined
    )
    text = f"gitdir: {SHOWN_GIT if confined else git_folder}\n"
    mark.write_text(text)
    try:
        yield {SHOWN_GIT: git_folder, OBJECTS: objects} if confined else {}
    finally:
        with suppress(OSError, UnicodeDecodeError):
            # Keep a file that somebody put in its place.
            if not mark.is_symlink() and mark.read_text() == text:
                mark.unlink()


def _make_working_copy_git(
    repository: ProjectRepository, commit: str, place: Path, *, confined: bool
) -> Path:
    """Create a git folder whose main branch ends at the commit, unless it exists."""
    folder = place / f"git-{commit}"
    if confined and folder.exists():
        return folder
    draft = place / f"draft-{secrets.token_hex(6)}"
    (draft / "objects" / "info").mkdir(parents=True)
    (draft / "refs" / "heads").mkdir(parents=True)
    (draft / "HEAD").write_text(f"ref: refs/heads/{MAIN}\n")
    (draft / "refs" / "heads" / MAIN).write_text(f"{commit}\n")
    objects_path = OBJECTS if confined else repository.path / "objects"
    (draft / "objects" / "info" / "alternates").write_text(f"{objects_path}\n")
    (draft / "config").write_text(CONFIG)
    if (shallow := repository.path / "shallow").exists():
        shutil.copyfile(shallow, draft / "shallow")
    index = pygit2.Index(str(draft / "index"))
    index.read_tree(repository.get_commit(commit).tree)
    index.write()
    shutil.rmtree(folder, ignore_errors=True)
    return draft.rename(folder)
