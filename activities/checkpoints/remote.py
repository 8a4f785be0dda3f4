"""Checkpoints in a remote, for hosts that share no disk.

A job's refs there, below `jobs/<job>/`:

    runs/<run id>/<root id>   newest checkpoint of a run of the workflow, by the root that made it
    tags/<tag>                phase starts and the end, as in the job's own repository
    left/<run id>/<commit>    checkpoint that a worker had to leave to the next one of its root
    owner/<run id>            first run of the workflow, to detect another one with the same id
    owner/forgotten-<time>    instead of all these: the job was forgotten

Each root moves only its own refs, and each run has new ones. So nobody overwrites another's push,
and commits that a reset of the workflow leaves behind stay reachable.

A remote is a git repository or, if its address begins with `s3://`, a bucket.
"""

import hashlib
from functools import lru_cache
from pathlib import Path

from activities.checkpoints.git_remote import GitRemote
from activities.checkpoints.remote_interface import Remote
from activities.checkpoints.s3_remote import S3Remote
from activities.checkpoints.workspaces_root import job_folder_name
from protocol.s3_address import S3Address, is_s3_address


@lru_cache(maxsize=64)
def _bucket_remote(url: str) -> S3Remote:
    return S3Remote(S3Address.parse(url))


def open_remote(url: str) -> Remote:
    return _bucket_remote(url) if is_s3_address(url) else GitRemote(url)


def remote_checkpoint_area(job: str) -> str:
    name = job_folder_name(job).replace(".", "%2E")
    if len(name.encode()) > 200:
        name = f"%h{hashlib.sha1(job.encode('utf-8', 'surrogatepass')).hexdigest()}"
    return f"jobs/{name}"


def push_to_remote(
    url: str,
    job: str,
    repository: Path,
    objects: Path,
    moved_refs: dict[str, str],
    new_refs: dict[str, str],
) -> None:
    open_remote(url).push_refs(
        remote_checkpoint_area(job), repository, objects, moved_refs, new_refs
    )


def remote_owner(url: str, job: str) -> str | None:
    """Return the first run id of the workflow that owns the job's refs in the remote, or None."""
    owners = open_remote(url).list_refs(remote_checkpoint_area(job), "owner")
    return owners[0].removeprefix("owner/") if owners else None
