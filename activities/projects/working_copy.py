"""The git of an agent's working copy: status, diff, log and blame of the product, to be read.

It is made beside the copy that a command works in and shown to it read-only, so that nothing is
written that way: the system makes the commits. None of it is part of a checkpoint.
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pygit2

from activities.checkpoints import Root
from activities.projects.repository import MAIN, ProjectRepository, repository_path
from protocol.handoffs import ProjectLink

SHOWN_GIT, OBJECTS = "/git", "/git-objects"
"""Where a command in a sandbox sees it, and the objects of the project's repository."""


@contextmanager
def readable_git(
    root: Root, link: ProjectLink | None, workspace: Path, *, confined: bool
) -> Iterator[Mapping[str, Path]]:
    """Give the product in a command's workspace a git while the body runs.

    Gives the folders that the sandbox has to show. Unconfined, what is written goes nowhere.
    """
    product = workspace / link.folder if link else workspace
    mark = product / ".git"
    if link is None or product.is_symlink() or not product.is_dir() or mark.exists():
        yield {}
        return
    repository = ProjectRepository(repository_path(root, link.id))
    objects = repository.path / "objects"
    git_folder = _make_git_folder(
        repository, link.handoff.inputs.commit, workspace.parent, confined=confined
    )
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
    index = pygit2.Index(str(draft / "index"))
    index.read_tree(repository.get_commit(commit).tree)
    index.write()
    shutil.rmtree(folder, ignore_errors=True)
    return draft.rename(folder)
