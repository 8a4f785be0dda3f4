"""Checkpoints in a git repository elsewhere: what hosts that share no disk have in common.

A job's refs there, below `refs/longhaul/jobs/<job>/`:

    runs/<run id>/<root id>   newest checkpoint of a run of the workflow, by the root it was made on
    tags/<tag>                phase starts and the end, as in the job's own repository
    owner/<run id>            first run of the workflow that the job is: told from another of its id

Each root moves refs of its own and each run has new ones. So nobody undoes what another one has
pushed, and what a reset of the workflow leaves behind stays reachable.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import suppress
from pathlib import Path

import pygit2

from activities.checkpoints.errors import RemoteAway
from activities.checkpoints.git import git
from activities.checkpoints.locks import locked, sync
from activities.checkpoints.owner import Mark, take_mark
from activities.checkpoints.repository import Checkpoints
from activities.checkpoints.root import folder_name

LOCK_SECONDS = 60
OWNER_SECONDS = 20
MOST_PACKS = 60
"""Each fetch brings one; so many wait for the next phase end at most."""
_HERE = "refs/longhaul/"
"""Refs of ours that say what the remote had: git then fetches only what is new since."""


def refs_of(job: str) -> str:
    """What the names of a job's refs begin with."""
    name = folder_name(job).replace(".", "%2E")
    if len(name.encode()) > 200:
        name = f"%h{hashlib.sha1(job.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"refs/longhaul/jobs/{name}/"


def push(
    url: str,
    job: str,
    repository: Path,
    objects: Path,
    moved: dict[str, str],
    made: dict[str, str],
) -> None:
    """Push commits to the job's refs; with them goes all that they were made from.

    Args:
        objects: Where git finds what the repository's own packs lack.
        moved: Commits by name of the ref, which is made, or moved there from wherever it was.
        made: The same, but a ref that points elsewhere is left as it is.

    Raises:
        NoGit, RemoteAway.
    """
    prefix = refs_of(job)
    specs = [f"+{commit}:{prefix}{name}" for name, commit in moved.items()]
    specs += [f"{commit}:{prefix}{name}" for name, commit in made.items() if name not in moved]
    try:
        git(repository, "push", "--porcelain", "--no-verify", url, *specs, objects=objects)
    except RemoteAway as away:
        refused = [line.split("\t") for line in away.told.splitlines() if line.startswith("!\t")]
        left = {f":{prefix}{name}" for name in made.keys() - moved.keys()}
        # A ref that points elsewhere is not even sent; what the remote itself refused comes again.
        whys = [
            why
            for _, spec, why in refused
            if why.startswith("[remote") or not spec.endswith(tuple(left))
        ]
        if whys:
            raise RemoteAway(f"{whys[0]} {away}", away.told) from None
        if not refused:
            raise


def owner_at(url: str, job: str) -> str | None:
    """First run id of the workflow whose job of that id is in the remote, None if there is none.

    Raises:
        NoGit, RemoteAway.
    """
    prefix = f"{refs_of(job)}owner/"
    told = git(None, "ls-remote", url, f"{prefix}*", seconds=OWNER_SECONDS)
    owners = [line.partition("\t")[2] for line in told.splitlines()]
    return next((ref.removeprefix(prefix) for ref in owners if ref.startswith(prefix)), None)


def fetch(url: str, job: str, checkpoints: Checkpoints, *, anew: bool = False) -> None:
    """Bring all that the remote has of the job into its repository.

    What comes is seen only when it is whole; a kill leaves a draft that the next one sweeps.

    Args:
        anew: Fetch also what should be here: for a repository that lost something.

    Raises:
        NoGit, RemoteAway, OSError.
    """
    path = checkpoints.path
    with locked(path / "longhaul-fetch.lock", seconds=LOCK_SECONDS):
        draft = path / "incoming"
        shutil.rmtree(draft, ignore_errors=True)
        try:
            pygit2.init_repository(str(draft), bare=True).free()
            if not anew:
                (draft / "objects" / "info" / "alternates").write_text("../../objects\n")
            wanted = f"+{refs_of(job)}*:{_HERE}*"
            git(draft, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", url, wanted)
            _take_packs(draft, path)
            _take_refs(draft, checkpoints, job)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    if len(list((path / "objects" / "pack").glob("pack-*.pack"))) > MOST_PACKS:
        with suppress(TimeoutError):
            checkpoints.pack(wait=0)


def _take_packs(draft: Path, path: Path) -> None:
    packs = sorted((draft / "objects" / "pack").glob("pack-*.pack"))
    if not packs:
        return
    place = path / "objects" / "pack"
    place.mkdir(exist_ok=True)
    # A packer sweeps indexes that have no pack yet.
    with locked(path / "longhaul-pack.lock", seconds=LOCK_SECONDS):
        for pack in packs:
            for part in (pack.with_suffix(".idx"), pack):
                sync(part)
                part.rename(place / part.name)
        sync(place)


def _take_refs(draft: Path, checkpoints: Checkpoints, job: str) -> None:
    repo = pygit2.Repository(str(draft))
    for ref in repo.listall_references():
        name, commit = ref.removeprefix(_HERE), _target(repo, ref)
        kind, _, rest = name.partition("/")
        if kind == "owner":
            take_mark(checkpoints.path, Mark(chain=rest, job=job))
        elif kind in ("tags", "runs") and commit:
            here = f"refs/{name}" if kind == "tags" else ref
            # Each costs a wait for the disk, and most are as they were.
            if _target(checkpoints.store.git, here) != commit:
                checkpoints.point(here, commit)
    repo.free()


def _target(repo: pygit2.Repository, ref: str) -> str | None:
    with suppress(KeyError, ValueError, pygit2.GitError):
        return str(repo.lookup_reference(ref).target)
    return None
