"""The git of an agent's working copy: status, diff, log and blame of the product, to be read.

It is made beside the copy that a command works in and shown to it read-only, so that nothing is
written that way: the system makes the commits. None of it is part of a checkpoint.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pygit2

from activities.checkpoints import Root
from activities.projects.repository import MAIN, ProjectRepository, project_repository_path
from protocol.handoffs import ProjectLink
from protocol.repository import RepositoryLink

SHOWN_GIT, OBJECTS = "/git", "/git-objects"
"""Where a command in a sandbox sees it, and the objects of the project's repository."""


@dataclass(frozen=True)
class GitPlace:
    """Where the git of a product is, and at which commit the product was handed over."""

    owner: str
    folder: str
    commit: str

    @classmethod
    def from_links(
        cls, link: ProjectLink | None, repository: RepositoryLink | None
    ) -> GitPlace | None:
        """What a project handed over, else what the job itself began from."""
        if link:
            return cls(link.id, link.folder, link.handoff.inputs.commit)
        if repository:
            return cls(repository.owner, repository.folder, repository.commit)
        return None


@contextmanager
def readable_git(
    root: Root, place: GitPlace | None, workspace: Path, *, confined: bool
) -> Iterator[Mapping[str, Path]]:
    """Give the product in a command's workspace a git while the body runs.

    Gives the folders that the sandbox has to show. Unconfined, what is written goes nowhere.
    """
    product = workspace / place.folder if place else workspace
    mark = product / ".git"
    if place is None or product.is_symlink() or not product.is_dir() or mark.exists():
        yield {}
        return
    path = project_repository_path(root, place.owner)
    if not path.exists():  # on the host that was lost
        yield {}
        return
    repository = ProjectRepository(path)
    objects = repository.path / "objects"
    git_folder = _make_git_folder(repository, place.commit, workspace.parent, confined=confined)
    text = f"gitdir: {SHOWN_GIT if confined else git_folder}\n"
    mark.write_text(text)
    try:
        yield {SHOWN_GIT: git_folder, OBJECTS: objects} if confined else {}
    finally:
        with suppress(OSError, UnicodeDecodeError):
            # What somebody put in its place is theirs.
            if not mark.is_symlink() and mark.read_text() == text:
                mark.unlink()


def _make_git_folder(
    repository: ProjectRepository, commit: str, place: Path, *, confined: bool
) -> Path:
    """A folder for git whose main line ends at the commit, made if need be."""
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
    (draft / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = false\n")
    if (shallow := repository.path / "shallow").exists():
        shutil.copyfile(shallow, draft / "shallow")
    index = pygit2.Index(str(draft / "index"))
    index.read_tree(repository.get_commit(commit).tree)
    index.write()
    shutil.rmtree(folder, ignore_errors=True)
    return draft.rename(folder)
