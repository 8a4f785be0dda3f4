"""Reading and writing git objects: the one place that knows how a stale handle shows.

Ids are 20 raw bytes here; hex only at the edges.
"""

import hashlib
import os
import tempfile
import zlib
from contextlib import suppress
from pathlib import Path

import pygit2
from pygit2.enums import ObjectType

from activities.checkpoints.errors import CheckpointMissing

EMPTY_TREE = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
LARGE = 1 << 20
_ABSENT = (KeyError, pygit2.GitError, OSError)


def read(repo: pygit2.Repository, oid: bytes) -> bytes:
    """The content of one object. Raises CheckpointMissing."""
    wanted = pygit2.Oid(raw=oid)
    try:
        return bytes(repo.read(wanted)[1])
    except _ABSENT:
        set_aside_if_damaged(Path(repo.path), oid.hex())
    # libgit2 looks for new packs by itself; a fresh handle also forgets packs that were
    # consolidated away under this one.
    try:
        return bytes(pygit2.Repository(repo.path).read(wanted)[1])
    except _ABSENT:
        raise CheckpointMissing(oid.hex()) from None


def size(repo: pygit2.Repository, oid: bytes) -> int:
    """The size of one object in bytes, from its header. Raises CheckpointMissing."""
    try:
        return int(repo.odb.read_header(pygit2.Oid(raw=oid))[1])
    except _ABSENT:
        return len(read(repo, oid))


def write_blob(repo: pygit2.Repository, data: bytes) -> bytes:
    """Stores a blob and returns its id."""
    if len(data) > LARGE:
        return _write_large(repo, data)
    return repo.write(ObjectType.BLOB, data).raw


def write_tree(repo: pygit2.Repository, data: bytes) -> bytes:
    """Stores a tree in git's own form and returns its id."""
    return repo.write(ObjectType.TREE, data).raw


def _write_large(repo: pygit2.Repository, data: bytes) -> bytes:
    """A loose object in git's form, made here because libgit2 holds the interpreter while it
    hashes and compresses (1.5 s for 50 MB); hashlib and zlib do not."""
    header = b"blob %d\0" % len(data)
    digest = hashlib.sha1(header)
    digest.update(data)
    if pygit2.Oid(raw=digest.digest()) in repo.odb:
        return digest.digest()
    store = Path(repo.path) / "objects"
    # Named like libgit2's own drafts, so that what a kill leaves is swept with them.
    handle, draft = tempfile.mkstemp(prefix="tmp_object_git2_", dir=store)
    with os.fdopen(handle, "wb") as file:
        squeezing = zlib.compressobj(1)
        file.write(squeezing.compress(header) + squeezing.compress(data) + squeezing.flush())
        os.fchmod(file.fileno(), 0o444)
    oid = digest.hexdigest()
    (store / oid[:2]).mkdir(exist_ok=True)
    Path(draft).rename(store / oid[:2] / oid[2:])
    return digest.digest()


def set_aside_if_damaged(repository: Path, oid: str) -> bool:
    """Moves a loose object that is cut short or garbled to `<repository>/damaged/`.

    A power cut can leave one. While it lies there, git takes the object for present and never
    writes it again, so the step that makes it anew would lose it anew.
    """
    path = repository / "objects" / oid[:2] / oid[2:]
    try:
        stored = path.read_bytes()
    except OSError:
        return False
    with suppress(zlib.error):
        if hashlib.sha1(zlib.decompress(stored)).hexdigest() == oid:
            return False
    (repository / "damaged").mkdir(exist_ok=True)
    with suppress(FileNotFoundError):  # another process was quicker
        path.rename(repository / "damaged" / oid)
    return True
