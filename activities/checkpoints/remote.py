"""Checkpoints in a remote git repository, shared by hosts that have no common disk.

A job's refs there, below `refs/longhaul/jobs/<job>/`:

    runs/<run id>/<root id>   newest checkpoint of a run of the workflow, by the root that made it
    tags/<tag>                phase starts and the end, as in the job's own repository
    owner/<run id>            first run of the workflow: distinguishes it from another of its id

Each root moves only its own refs, and each run has new ones. So nobody overwrites another's push,
and commits that a reset of the workflow leaves behind stay reachable.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path

import pygit2

from activities.checkpoints.errors import RemoteUnavailable
from activities.checkpoints.git import run_git
from activities.checkpoints.locks import file_lock, fsync_path
from activities.checkpoints.owner import OwnerMark, record_owner
from activities.checkpoints.repository import Checkpoints
from activities.checkpoints.root import folder_name

LOCK_SECONDS = 60
OWNER_SECONDS = 20
MAX_PACKS = 60
"""Each fetch adds a pack; at most this many wait for the next phase end."""
_LOCAL_REFS = "refs/longhaul/"
"""Local refs that record the remote's state, so that git fetches only new commits."""


def ref_prefix(job: str) -> str:
    """Return the common prefix of a job's refs."""
    name = folder_name(job).replace(".", "%2E")
    if len(name.encode()) > 200:
        name = f"%h{hashlib.sha1(job.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"refs/longhaul/jobs/{name}/"


def push_refs(
    url: str,
    job: str,
    repository: Path,
    objects: Path,
    moved_refs: dict[str, str],
    new_refs: dict[str, str],
) -> None:
    """Push commits, with everything reachable from them, to the job's refs.

    Args:
        objects: Folder with objects that the repository's own packs lack.
        moved_refs: Commits by ref name. Each ref is created or moved from wherever it was.
        new_refs: The same, but a ref that points elsewhere stays.

    Raises:
        GitNotInstalled, RemoteUnavailable.
    """
    prefix = ref_prefix(job)
    specs = [f"+{commit}:{prefix}{name}" for name, commit in moved_refs.items()]
    specs += [
        f"{commit}:{prefix}{name}" for name, commit in new_refs.items() if name not in moved_refs
    ]
    try:
        run_git(repository, "push", "--porcelain", "--no-verify", url, *specs, objects=objects)
    except RemoteUnavailable as away:
        rejected = [line.split("\t") for line in away.output.splitlines() if line.startswith("!\t")]
        new_specs = {f":{prefix}{name}" for name in new_refs.keys() - moved_refs.keys()}
        # A new ref that points elsewhere is not sent. Refs that the remote refused are pushed
        # again.
        reasons = [
            why
            for _, spec, why in rejected
            if why.startswith("[remote") or not spec.endswith(tuple(new_specs))
        ]
        if reasons:
            raise RemoteUnavailable(f"{reasons[0]} {away}", away.output) from None
        if not rejected:
            raise


def remote_owner(url: str, job: str) -> str | None:
    """Return the first run id of the workflow that owns the job's refs in the remote, or None.

    Raises:
        GitNotInstalled, RemoteUnavailable.
    """
    prefix = f"{ref_prefix(job)}owner/"
    output = run_git(None, "ls-remote", url, f"{prefix}*", seconds=OWNER_SECONDS)
    owners = [line.partition("\t")[2] for line in output.splitlines()]
    return next((ref.removeprefix(prefix) for ref in owners if ref.startswith(prefix)), None)


def fetch_refs(url: str, job: str, checkpoints: Checkpoints, *, refetch: bool = False) -> None:
    """Fetch everything the remote has of the job into its repository.

    Fetched objects become visible only when complete; the next fetch removes the draft of a killed
    one.

    Args:
        refetch: Also fetch what should be here already, for a repository that lost something.

    Raises:
        GitNotInstalled, RemoteUnavailable, OSError.
    """
    path = checkpoints.path
    with file_lock(path / "longhaul-fetch.lock", seconds=LOCK_SECONDS):
        draft = path / "incoming"
        shutil.rmtree(draft, ignore_errors=True)
        try:
            pygit2.init_repository(str(draft), bare=True).free()
            if not refetch:
                (draft / "objects" / "info" / "alternates").write_text("../../objects\n")
            refspec = f"+{ref_prefix(job)}*:{_LOCAL_REFS}*"
            run_git(draft, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", url, refspec)
            take_packs(draft, path)
            _take_refs(draft, checkpoints, job)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    if len(list((path / "objects" / "pack").glob("pack-*.pack"))) > MAX_PACKS:
        with suppress(TimeoutError):
            checkpoints.pack(wait=0)


def take_packs(draft: Path, path: Path) -> None:
    """Move fetched packs from a draft folder into the repository."""
    packs = sorted((draft / "objects" / "pack").glob("pack-*.pack"))
    if not packs:
        return
    place = path / "objects" / "pack"
    place.mkdir(exist_ok=True)
    # A packer removes indexes without a pack, so the pack goes first.
    with file_lock(path / "longhaul-pack.lock", seconds=LOCK_SECONDS):
        for pack in packs:
            for part in (pack.with_suffix(".idx"), pack):
                fsync_path(part)
                part.rename(place / part.name)
        fsync_path(place)


def _take_refs(draft: Path, checkpoints: Checkpoints, job: str) -> None:
    repo = pygit2.Repository(str(draft))
    for ref in repo.listall_references():
        name, commit = ref.removeprefix(_LOCAL_REFS), _ref_target(repo, ref)
        kind, _, rest = name.partition("/")
        if kind == "owner":
            record_owner(checkpoints.path, OwnerMark(chain=rest, job=job))
        elif kind in ("tags", "runs") and commit:
            here = f"refs/{name}" if kind == "tags" else ref
            # Skip unchanged refs: each update waits for the disk.
            if _ref_target(checkpoints.store.git, here) != commit:
                checkpoints.set_ref(here, commit)
    repo.free()


def _ref_target(repo: pygit2.Repository, ref: str) -> str | None:
    with suppress(KeyError, ValueError, pygit2.GitError):
        return str(repo.lookup_reference(ref).target)
    return None
