"""The copy of a job's repository in its remote, for a folder that other hosts cannot fetch.

Another host fetches a repository with an address again. A folder lies on one host only, so its
commits are pushed to an area of their own, `repositories/<key>/`, when the job begins.
"""

from __future__ import annotations

import hashlib

from activities.checkpoints import CheckpointMissing, Root
from activities.checkpoints.locks import file_lock
from activities.checkpoints.remote import bring_packs, open_remote
from activities.projects.repository import MAIN, PINNED, ProjectRepository, project_repository_path
from activities.repository.fetched import LOCK_SECONDS, START, write_durably
from protocol.repository import RepositoryOrigin

_START = "start"


def store_repository_copy(url: str, root: Root, owner: str, commit: str) -> None:
    """Push the pinned commit of a job's repository to the remote; twice changes nothing.

    Raises:
        GitNotInstalled: This host has no git program.
        RemoteUnavailable: The remote cannot be reached or refuses.
    """
    path = project_repository_path(root, owner)
    open_remote(url).push_refs(_copy_area(owner), path, None, {}, {_START: commit})


def fetch_repository_copy(
    url: str, root: Root, owner: str, origin: RepositoryOrigin
) -> ProjectRepository:
    """Fetch a job's repository from the remote and return it.

    Raises:
        CheckpointMissing: The remote has no copy, or one of another commit.
        GitNotInstalled: This host has no git program.
        RemoteUnavailable: The remote cannot be reached or refuses.
        OSError: It cannot be stored.
    """
    repository = ProjectRepository.create(project_repository_path(root, owner))
    path = repository.path
    with file_lock(path / "longhaul-copy.lock", seconds=LOCK_SECONDS):
        if repository.origin is None:
            refs = bring_packs(open_remote(url), _copy_area(owner), path)
            if refs.get(_START) != origin.commit:
                raise CheckpointMissing(origin.commit)
            write_durably(path / START, f"{origin.commit}\n")
            ProjectRepository(path).set_branch(MAIN, origin.commit)
            write_durably(path / PINNED, origin.model_dump_json())
    return ProjectRepository(path)


def _copy_area(owner: str) -> str:
    key = hashlib.sha1(owner.encode("utf-8", "surrogatepass")).hexdigest()
    return f"repositories/{key}"
