"""A history that was fetched in part, as one commit that every git server accepts.

Git servers refuse a commit whose parents they lack. So a commit without them carries it: its tree
has the raw data of each commit of the partial history, and the files of each.

    base/commits/<commit>    raw data of a commit up to the one that the project began from
    base/trees/<commit>      its files
    work/…                   the same for the commits on top of it
    tip                      id of the commit that it carries
    shallow                  ids of the commits whose parents were not fetched, a line each
"""

from typing import cast

import pygit2
from pygit2.enums import FileMode, ObjectType

from activities.projects.project_repository import ProjectRepository

SHALLOW = "shallow"
"""File that git writes in a repository with a part of the history."""
BASE, WORK, TIP = "base", "work", "tip"
COMMITS, TREES = "commits", "trees"
_CARRIED = "refs/longhaul/carried/"


def boundary_commits(repository: ProjectRepository) -> set[str]:
    """Return the commits whose parents were not fetched; none if the history is whole."""
    try:
        return set((repository.path / SHALLOW).read_text().split())
    except FileNotFoundError:
        return set()


def carry_branch(repository: ProjectRepository, name: str, tip: str, base: str) -> str:
    """Return a commit that carries a branch; "" if the branch has its whole history.

    Each follows the one before of the same branch, so that a remote has only one line of them.

    Args:
        repository: The repository with the branch.
        name: Name of the branch.
        tip: Its commit.
        base: The commit that the project began from.
    """
    boundary = boundary_commits(repository)
    history = _partial_history(repository, tip, boundary)
    if not boundary & set(history):
        return ""
    ref = f"{_CARRIED}{name}"
    before = (
        [str(repository.git.references[ref].target)] if ref in repository.git.references else []
    )
    if before and repository.read_file(before[0], TIP) == tip.encode():
        return before[0]
    older = _partial_history(repository, base, boundary)
    git, builder = repository.git, repository.git.TreeBuilder()
    builder.insert(BASE, _write_part(git, older), FileMode.TREE)
    added = [commit for commit in history if commit not in set(older)]
    builder.insert(WORK, _write_part(git, added), FileMode.TREE)
    builder.insert(TIP, git.create_blob(tip.encode()), FileMode.BLOB)
    lines = "".join(f"{commit}\n" for commit in sorted(boundary))
    builder.insert(SHALLOW, git.create_blob(lines.encode()), FileMode.BLOB)
    carrier = repository.commit(str(builder.write()), before, f"Carries {tip}", 0)
    git.references.create(ref, carrier, force=True)
    return carrier


def restore_branch(repository: ProjectRepository, name: str, carrier: str) -> str:
    """Write the commits that a carrier has; return the one that it carries."""
    tree = repository.get_commit(carrier).tree
    shallow = repository.read_file(carrier, SHALLOW) or b""
    place = repository.path / SHALLOW
    if not place.exists():
        draft = place.with_name(f"draft-{SHALLOW}-{carrier}")
        draft.write_bytes(shallow)
        draft.replace(place)
    for part in (BASE, WORK):
        for entry in cast("pygit2.Tree", tree[f"{part}/{COMMITS}"]):
            if str(entry.name) not in repository.git:
                data = cast("pygit2.Blob", entry).data
                repository.git.odb.write(ObjectType.COMMIT, data)
    repository.git.references.create(f"{_CARRIED}{name}", carrier, force=True)
    return (repository.read_file(carrier, TIP) or b"").decode()


def _partial_history(repository: ProjectRepository, tip: str, boundary: set[str]) -> list[str]:
    """Return a commit and those before it, as far as they are here."""
    known, ahead = dict[str, None](), [tip]
    while ahead:
        commit = ahead.pop()
        if commit in known:
            continue
        known[commit] = None
        if commit not in boundary:
            ahead += [str(parent) for parent in repository.get_commit(commit).parent_ids]
    return list(known)


def _write_part(git: pygit2.Repository, commits: list[str]) -> pygit2.Oid:
    data, trees, part = git.TreeBuilder(), git.TreeBuilder(), git.TreeBuilder()
    for commit in commits:
        _, raw = git.odb.read(pygit2.Oid(hex=commit))
        data.insert(commit, git.create_blob(raw), FileMode.BLOB)
        trees.insert(commit, git[commit].peel(pygit2.Tree).id, FileMode.TREE)
    part.insert(COMMITS, data.write(), FileMode.TREE)
    part.insert(TREES, trees.write(), FileMode.TREE)
    return part.write()
