"""Reading a project's repository: its product, its own files beside it, and its story."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pygit2

from activities.checkpoints import CheckpointMissing, Root, RootError
from activities.projects.repository import MAIN, Repository, repository_path
from cli.output import Mistake
from engine.connection import workspaces_root
from protocol.project import STATE


@dataclass(frozen=True)
class Line:
    """A commit of the main line."""

    id: str
    at: int
    """Epoch seconds."""
    message: str


def repository(project: str) -> Repository:
    """A project's repository below the workspaces root of this environment.

    Raises:
        Mistake: it is not there.
    """
    try:
        return Repository(repository_path(Root.open(workspaces_root(), create=False), project))
    except (RootError, CheckpointMissing) as missing:
        raise Mistake(f"{missing} If it lives elsewhere, set LONGHAUL_WORKSPACES.") from None


def tip(held: Repository, *, state: bool) -> str:
    """The newest commit of the product, or of the project's own files."""
    branch = f"refs/heads/{STATE if state else MAIN}"
    if branch not in held.git.references:
        raise Mistake("the project has nothing yet")
    return str(held.git.references[branch].target)


def listing(held: Repository, commit: str, path: str) -> list[tuple[str, int]] | bytes:
    """Paths and sizes of the files below a folder, or the content of a file.

    Raises:
        Mistake: there is no such path.
    """
    tree = held.commit_of(commit).tree
    try:
        found = tree[path.rstrip("/")] if path.strip("/") else tree
    except (KeyError, ValueError):
        raise Mistake(f"there is no {path} in the project") from None
    if isinstance(found, pygit2.Blob):
        return bytes(found.data)
    if not isinstance(found, pygit2.Tree):
        raise Mistake(f"{path} is a repository of its own")
    return list(_below(found, f"{path.strip('/')}/" if path.strip("/") else ""))


def _below(tree: pygit2.Tree, above: str) -> Iterator[tuple[str, int]]:
    for entry in tree:
        if isinstance(entry, pygit2.Tree):
            yield from _below(entry, f"{above}{entry.name}/")
        elif isinstance(entry, pygit2.Blob):
            yield f"{above}{entry.name}", entry.size


def story(held: Repository, commit: str) -> list[Line]:
    """The commits of the main line, oldest first: one for each accepted piece of work."""
    walked = held.git.walk(held.commit_of(commit).id)
    walked.simplify_first_parent()
    return [Line(str(each.id), each.commit_time, each.message) for each in walked][::-1]
