"""Fetches checkpoints from a remote into a job's repository."""

import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pygit2

from activities.checkpoints.checkpoint_errors import CheckpointMissing
from activities.checkpoints.checkpoint_repository import Checkpoints
from activities.checkpoints.disk_access import fsync_path
from activities.checkpoints.forgotten_records import refuse_forgotten_job
from activities.checkpoints.git_remote import REFS
from activities.checkpoints.locks import file_lock
from activities.checkpoints.remote import open_remote, remote_checkpoint_area
from activities.checkpoints.remote_interface import Remote, is_forgotten_mark
from activities.checkpoints.repository_owner import OwnerMark, record_owner
from protocol.git_address import git_address_without_user

LOCK_SECONDS = 60
MAX_PACKS = 60
"""Number of packs in a repository above which a fetch packs them together."""


def fetch_remote_checkpoints(
    url: str, job: str, checkpoints: Checkpoints, *, refetch: bool = False
) -> None:
    """Fetch all of the job's checkpoints from the remote into its repository.

    Fetched objects become visible only when complete; the next fetch removes the draft of a killed
    one.

    Args:
        refetch: Also fetch objects that should be here already, for a damaged repository.

    Raises CheckpointMissing, GitNotInstalled, RemoteUnavailable, OSError.
    """
    path = checkpoints.path
    refuse_forgotten_job(path.parents[2], job)
    refs = fetch_remote_packs(open_remote(url), remote_checkpoint_area(job), path, refetch=refetch)
    refuse_forgotten_refs(refs, job, url)
    _adopt_fetched_refs(refs, checkpoints, job, url)
    if len(list((path / "objects" / "pack").glob("pack-*.pack"))) > MAX_PACKS:
        with suppress(TimeoutError):
            checkpoints.pack(wait=0)


def refuse_forgotten_refs(refs: Iterable[str], job: str, url: str) -> None:
    """Raise CheckpointMissing if the refs say that the job was forgotten."""
    if any(map(is_forgotten_mark, refs)):
        where = git_address_without_user(url)
        raise CheckpointMissing("", f"The job {job} was forgotten in the remote {where}.")


def fetch_remote_packs(
    remote: Remote, area: str, path: Path, *, refetch: bool = False
) -> dict[str, str]:
    """Fetch the objects of an area that a repository lacks; return the area's refs."""
    with file_lock(path / "longhaul-fetch.lock", seconds=LOCK_SECONDS):
        draft = path / "incoming"
        shutil.rmtree(draft, ignore_errors=True)
        try:
            pygit2.init_repository(str(draft), bare=True).free()
            if not refetch:
                (draft / "objects" / "info" / "alternates").write_text("../../objects\n")
            refs, packs = remote.fetch_packs(area, draft)
            _install_packs_under_lock(packs, path)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    return refs


def install_fetched_packs(draft: Path, path: Path) -> None:
    _install_packs_under_lock(sorted((draft / "objects" / "pack").glob("pack-*.pack")), path)


def _install_packs_under_lock(packs: list[Path], path: Path) -> None:
    if not packs:
        return
    place = path / "objects" / "pack"
    place.mkdir(exist_ok=True)
    # A packer removes indexes without a pack, so move both while it is locked out.
    with file_lock(path / "longhaul-pack.lock", seconds=LOCK_SECONDS):
        for pack in packs:
            for part in (pack.with_suffix(".idx"), pack):
                fsync_path(part)
                part.rename(place / part.name)
        fsync_path(place)


def _adopt_fetched_refs(refs: dict[str, str], checkpoints: Checkpoints, job: str, url: str) -> None:
    for name, commit in refs.items():
        kind, _, rest = name.partition("/")
        if kind == "owner":
            record_owner(checkpoints.path, OwnerMark(chain=rest, job=job, remote=url))
        elif kind in ("tags", "runs"):
            # Keep the refs of runs too: they show git what it has, so that it fetches only newer
            # commits.
            local_ref = f"refs/{name}" if kind == "tags" else f"{REFS}{name}"
            # Skip unchanged refs: writing one waits for the disk.
            if _local_ref_target(checkpoints.store.git, local_ref) != commit:
                checkpoints.set_ref(local_ref, commit)


def _local_ref_target(repo: pygit2.Repository, ref: str) -> str | None:
    with suppress(KeyError, ValueError, pygit2.GitError):
        return str(repo.lookup_reference(ref).target)
    return None
