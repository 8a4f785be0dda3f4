"""Files and folders in a remote that were handed in before their job exists.

A file has an area of its own, `staged/<key>/`, with one ref, `file`: a commit that contains the
file. A folder of code has one with the ref `start`: the last commit of its repository.
"""

import hashlib
import secrets
import tempfile
from pathlib import Path

import pygit2
from pygit2.enums import FileMode

from activities.checkpoints.remote import open_remote
from activities.checkpoints.remote_fetch import fetch_remote_packs

_NAME, _START = "file", "start"


def remote_file_area(name: str) -> str:
    """Return the area of a staged file, from its name below the folder of staged files."""
    return f"staged/{hashlib.sha1(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


def store_remote_file(url: str, name: str, source: Path) -> None:
    """Store a staged file in the remote; doing it twice changes nothing."""
    with tempfile.TemporaryDirectory(prefix="longhaul-staged-") as folder:
        repo = pygit2.init_repository(folder, bare=True)
        builder = repo.TreeBuilder()
        builder.insert(_NAME, repo.create_blob_fromdisk(str(source)), FileMode.BLOB)
        who = pygit2.Signature("longhaul", "longhaul@localhost", 0, 0)
        commit = repo.create_commit(None, who, who, "A staged file", builder.write(), [])
        refs = {_NAME: str(commit)}
        open_remote(url).push_refs(remote_file_area(name), Path(folder), None, {}, refs)


def fetch_remote_file(url: str, name: str, target: Path) -> bool:
    """Fetch a staged file from the remote; return False if the remote has none of that name."""
    with tempfile.TemporaryDirectory(prefix="longhaul-staged-") as folder:
        pygit2.init_repository(folder, bare=True).free()
        refs = fetch_remote_packs(open_remote(url), remote_file_area(name), Path(folder))
        if _NAME not in refs:
            return False
        blob = pygit2.Repository(folder)[refs[_NAME]].peel(pygit2.Commit).tree[_NAME]
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = target.with_name(f".{secrets.token_hex(6)}")
        draft.write_bytes(blob.peel(pygit2.Blob).data)
        draft.replace(target)
        return True


def store_remote_folder(url: str, repository: Path, commit: str) -> None:
    """Put a staged repository into the remote by its name; idempotent."""
    refs = {_START: commit}
    open_remote(url).push_refs(remote_file_area(repository.name), repository, None, {}, refs)


def fetch_remote_folder(url: str, name: str, target: Path) -> str | None:
    """Bring a staged repository's objects into an empty one; gives its commit, None for none."""
    return fetch_remote_packs(open_remote(url), remote_file_area(name), target).get(_START)
