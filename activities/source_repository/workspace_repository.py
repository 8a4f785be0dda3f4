"""Puts a repository into a job's workspace."""

import os
import shutil
from pathlib import Path

from activities.checkpoints import Checkpoints, Root
from activities.checkpoints.alternates import lend_objects
from activities.checkpoints.atomic_folder import atomic_folder
from activities.checkpoints.repository_owner import OWNER_FILE
from activities.job.snapshot import Snapshot
from activities.projects.project_repository import ProjectRepository, project_repository_path
from protocol.publishing import Publish
from protocol.repository_link import FOLDER, RepositoryLink, RepositoryOrigin

_LEFT = shutil.ignore_patterns(
    "incoming-*", "pushing-*", "*.lock", OWNER_FILE, "replies", "notified", "draft-*"
)


def put_repository_into_workspace(
    root: Root, snapshot: Snapshot, owner: str, origin: RepositoryOrigin, publish: Publish | None
) -> None:
    repository = ProjectRepository(project_repository_path(root, owner))
    snapshot.borrow_objects(repository.path)
    snapshot.files = repository.put_into(snapshot.files, origin.commit, FOLDER)
    snapshot.repository = RepositoryLink(
        owner=owner,
        tree=snapshot.files.subfolder(FOLDER).id,
        commit=origin.commit,
        origin=origin,
        publish=publish,
        subjects=repository.subjects(origin.commit) if snapshot.config.commits.single else [],
    )


def share_repository_with_fork(
    root: Root, link: RepositoryLink, owner: str, checkpoints: Checkpoints
) -> None:
    """Give a fork its own copy of the job's git repository, and let its checkpoints read it.

    Packs are hard-linked if the disk allows, since git never changes them. Doing it twice changes
    nothing.
    """
    source, target = project_repository_path(root, link.owner), project_repository_path(root, owner)
    if not source.exists():  # the job came from a lost host; its checkpoints are complete
        return
    if not target.exists():
        with atomic_folder(target) as draft:
            shutil.copytree(source, draft, copy_function=_link_repository_pack, ignore=_LEFT)
    lend_objects(target, checkpoints.path)
    checkpoints.store.reload()


def _link_repository_pack(source: str, target: str) -> None:
    # Link only packs: git changes other files in place.
    if Path(source).suffix in (".pack", ".idx"):
        try:
            os.link(source, target)
        except OSError:
            pass
        else:
            return
    shutil.copy2(source, target)
