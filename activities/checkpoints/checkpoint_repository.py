"""A job's repository: commits that move no ref, tags under a lock, one handle per thread."""

import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

import pygit2
from pygit2.enums import ConfigLevel

from activities.checkpoints import sharded_tree
from activities.checkpoints.atomic_folder import atomic_folder
from activities.checkpoints.checkpoint_errors import CheckpointMissing, path_in_errors
from activities.checkpoints.disk_access import fsync_path
from activities.checkpoints.forgotten_records import refuse_forgotten_job
from activities.checkpoints.journal_records import COMMIT, JournalRecord
from activities.checkpoints.locks import file_lock
from activities.checkpoints.object_store import ObjectStore
from activities.checkpoints.packing import WAIT_SECONDS, pack_journal, rebuild_pack_indexes
from activities.checkpoints.tree_files import MAX_FILE_BYTES, Files
from activities.checkpoints.workspaces_root import Root

HANDLES_PER_THREAD = 64

# On a shared volume, repositories may belong to another user id than the worker's. They are below a
# root the operator chose, and nothing in them is executed.
pygit2.settings.owner_validation = False
# Personal git settings do not apply either: with an unreadable home or a mistake in `~/.gitconfig`,
# no repository would open.
for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL, ConfigLevel.PROGRAMDATA):
    pygit2.settings.search_path[level] = ""
# libgit2 keeps every pack it has read open, and a worker serves many jobs with a few packs each.
pygit2.settings.mwindow_file_limit = 128
# The memory that it maps is bounded for the same reason.
pygit2.settings.mwindow_mapped_limit = 256 << 20


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One checkpoint: commit id, epoch seconds UTC, message, tree id."""

    id: str
    timestamp: int
    message: str
    tree: str


class Checkpoints:
    """A handle on a job's repository. For one thread: get it through `open_checkpoints`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = ObjectStore(path)

    @classmethod
    def create(cls, root: Root, job: str) -> "Checkpoints":
        path = root.repository(job)
        if not path.exists():
            with atomic_folder(path) as draft:
                repo = pygit2.init_repository(str(draft), bare=True)
                # Only Temporal's history refers to most commits, and git cannot see it: `git gc`
                # must not remove them.
                repo.config["gc.auto"] = 0
                repo.config["gc.pruneExpire"] = "never"
                repo.config["gc.reflogExpire"] = "never"
                # Searching for deltas in large files costs seconds and saves little.
                repo.config["core.bigFileThreshold"] = "4m"
                # Compare a large object with the next in size only, not with ten.
                repo.config["pack.windowMemory"] = "1m"
                repo.free()
            fsync_path(path.parent)
        return cls(path)

    def files(self, tree: str, *, limit: int = MAX_FILE_BYTES) -> Files:
        return Files(self.store, tree, limit=limit)

    def commit(self, tree_id: str, parents: list[str], message: str, timestamp: int) -> str:
        """Store a commit and return its id, moving no ref. `timestamp`: epoch seconds UTC.

        The same arguments give the same commit. Pending objects are written with it. Raises
        CheckpointMissing for a missing tree or parent, OSError.
        """
        for needed in (tree_id, *parents):
            self.store.require(bytes.fromhex(needed))
        who = f"longhaul <longhaul@localhost> {timestamp} +0000"
        head = [f"tree {tree_id}", *(f"parent {parent}" for parent in parents)]
        head += [f"author {who}", f"committer {who}"]
        text = message.encode("utf-8", "backslashreplace").replace(b"\0", b"\\0")
        data = "\n".join(head).encode() + b"\n\n" + text
        commit = self.store.write(JournalRecord.create(COMMIT, data))
        self.store.flush()
        return commit.hex()

    def tree_id(self, commit: str) -> str:
        return self._read_commit(commit)[0].tree

    def has_commit(self, commit: str) -> bool:
        try:
            self.tree_id(commit)
        except CheckpointMissing:
            return False
        return True

    def is_intact(self, commit: str) -> bool:
        """Whether a checkpoint and every file in it can be read, after a disk's failure."""
        return any(self.intact_commits([commit]))

    def intact_commits(self, commits: Iterable[str]) -> Iterator[str]:
        """Return the intact ones among the checkpoints, in order; shared files are read once."""
        read: set[str] = set()
        is_mended = False
        for commit in commits:
            intact = self._check_intact(commit, read)
            if not intact and not is_mended and self.path.is_dir():
                # A pack without an index still has all its objects.
                intact = rebuild_pack_indexes(self.path) and self._check_intact(commit, read)
                is_mended = True
            if intact:
                yield commit

    def _check_intact(self, commit: str, read: set[str]) -> bool:
        sharded_tree.clear_sharded_tree_cache()
        try:
            self.store.reload()
            for entry in self.files(self.tree_id(commit)).walk():
                if entry.kind != "folder" and entry.id not in read:
                    # Read the content: a header shows no damage, and a step that needs the file
                    # would find it missing and rewind to the same checkpoint for ever.
                    self.store.read_stored(bytes.fromhex(entry.id))
                    read.add(entry.id)
        except CheckpointMissing:
            return False
        return True

    def log(self, commit: str, limit: int) -> list[LogEntry]:
        """Return at most `limit` checkpoints along first parents, as far as history goes."""
        entry, parent = self._read_commit(commit)
        history = [entry]
        while parent and len(history) < limit:
            try:
                entry, parent = self._read_commit(parent)
            except CheckpointMissing:
                break
            history.append(entry)
        return history

    def lacks_parent(self, commit: str) -> bool:
        """Whether the commit's parent is missing. Raises CheckpointMissing for the commit."""
        _, parent = self._read_commit(commit)
        return parent is not None and not self.has_commit(parent)

    def tag(self, name: str, commit: str) -> None:
        if not pygit2.reference_is_valid_name(f"refs/tags/{name}"):
            raise ValueError(f"{name!r} cannot be the name of a tag.")
        self.set_ref(f"refs/tags/{name}", commit)

    def set_ref(self, name: str, commit: str) -> None:
        """Like `tag`, for any ref name that git accepts. Raises CheckpointMissing."""
        self._read_commit(commit)
        ref = self.path / name
        with ExitStack() as stack:
            # Only a frozen process holds the lock this long. Continuing is safe: the lock only
            # keeps two writers from removing each other's draft.
            with suppress(TimeoutError):
                stack.enter_context(file_lock(self.path / "longhaul-refs.lock", seconds=2))
            ref.parent.mkdir(parents=True, exist_ok=True)
            # Every writer holds our lock, and its holder died, so git's own lock file is left over.
            lock = ref.with_name(f"{ref.name}.lock")
            lock.unlink(missing_ok=True)
            with path_in_errors(lock):
                lock.write_text(f"{commit}\n")
            fsync_path(lock)
            lock.rename(ref)
            fsync_path(ref.parent)

    def tags(self) -> dict[str, str]:
        """Return commit ids by tag name, sorted by name, without damaged tags."""
        commits = {}
        prefix = "refs/tags/"
        # libgit2 silently skips tags that it may not read.
        with suppress(FileNotFoundError):
            for folder, _, names in os.walk(self.path / prefix, onerror=_raise_ref_walk_error):
                for name in names:
                    with suppress(FileNotFoundError):
                        Path(folder, name).read_bytes()
        for ref in sorted(self.store.git.listall_references()):
            if ref.startswith(prefix) and not ref.endswith(".lock"):
                with suppress(KeyError, ValueError, pygit2.GitError):
                    commits[ref.removeprefix(prefix)] = str(
                        self.store.git.lookup_reference(ref).target
                    )
        return commits

    def pack(self, *, wait: float = WAIT_SECONDS) -> None:
        self.store.flush()
        try:
            pack_journal(self.path, wait=wait)
        except TimeoutError:
            self.store.journal.sync()
            raise
        self.store.journal.refresh()

    @property
    def is_full(self) -> bool:
        return self.store.journal.is_full

    def _read_commit(self, commit: str) -> tuple[LogEntry, str | None]:
        try:
            # Read from disk, so that a lost repository is noticed at the next step.
            raw = self.store.read_stored(bytes.fromhex(commit))
        except ValueError:
            raise CheckpointMissing(commit) from None
        head, _, message = raw.decode("utf-8", "replace").partition("\n\n")
        fields: dict[str, str] = {}
        for line in head.splitlines():
            key, _, value = line.partition(" ")
            fields.setdefault(key, value)
        if "tree" not in fields or "committer" not in fields:
            raise CheckpointMissing(commit, f"{commit} is not a checkpoint.")
        timestamp = int(fields["committer"].split()[-2])
        return LogEntry(commit, timestamp, message, fields["tree"]), fields.get("parent")


def _raise_ref_walk_error(error: OSError) -> None:
    raise error


class _HandleCache(threading.local):
    def __init__(self) -> None:
        self.by_path: OrderedDict[tuple[Path, int], Checkpoints] = OrderedDict()


_handles = _HandleCache()


def open_checkpoints(root: Root, job: str, *, create: bool = False) -> Checkpoints:
    """Return this thread's handle on a job's repository; the 64 used last stay open.

    Without `create`, raises CheckpointMissing if there is no repository; with it, if the job was
    forgotten.
    """
    path = root.repository(job)
    cache = _handles.by_path
    with suppress(FileNotFoundError):
        # The key includes the inode: a repository that was lost and created again needs a new
        # handle.
        key = (path, path.stat().st_ino)
        if key not in cache:
            cache[key] = Checkpoints(path)
        cache.move_to_end(key)
        while len(cache) > HANDLES_PER_THREAD:
            cache.popitem(last=False)
        return cache[key]
    if not create:
        raise CheckpointMissing("", f"There is no checkpoint repository at {path}.")
    refuse_forgotten_job(root.path, job)
    Checkpoints.create(root, job)
    return open_checkpoints(root, job)
