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
from activities.checkpoints.errors import CheckpointMissing
from activities.checkpoints.files import MAX_FILE_BYTES, Files
from activities.checkpoints.locks import file_lock, fsync_path, path_in_errors
from activities.checkpoints.objects import ObjectStore
from activities.checkpoints.packs import WAIT_SECONDS, mend_indexes, pack_journal
from activities.checkpoints.records import COMMIT, JournalRecord
from activities.checkpoints.root import Root

HANDLES_PER_THREAD = 64

# Repositories on a shared volume may belong to another user id than the worker's; they lie under
# a root the operator chose, and nothing in them is executed.
pygit2.settings.owner_validation = False
# Nor do people's own settings for git count in them: without a home that can be read, or with a
# mistake in `~/.gitconfig`, no repository would open.
for level in (ConfigLevel.SYSTEM, ConfigLevel.XDG, ConfigLevel.GLOBAL, ConfigLevel.PROGRAMDATA):
    pygit2.settings.search_path[level] = ""
# libgit2 keeps every pack it has read open; a worker serves many jobs with a few packs each.
pygit2.settings.mwindow_file_limit = 128
# Nor is more of them mapped into its memory at once.
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
        """The job's repository, made if need be; a kill or a race harms nothing."""
        path = root.repository(job)
        if not path.exists():
            with atomic_folder(path) as draft:
                repo = pygit2.init_repository(str(draft), bare=True)
                # Nothing refers to most commits but Temporal's history, which git cannot see: a
                # well-meant `git gc` must not throw them away.
                repo.config["gc.auto"] = 0
                repo.config["gc.pruneExpire"] = "never"
                repo.config["gc.reflogExpire"] = "never"
                # Looking for deltas in large files costs seconds and finds little.
                repo.config["core.bigFileThreshold"] = "4m"
                # A large one is compared with the next in size, not with ten.
                repo.config["pack.windowMemory"] = "1m"
                repo.free()
            fsync_path(path.parent)
        return cls(path)

    def files(self, tree: str, *, limit: int = MAX_FILE_BYTES) -> Files:
        """The files of a tree of this repository."""
        return Files(self.store, tree, limit=limit)

    def commit(self, tree_id: str, parents: list[str], message: str, timestamp: int) -> str:
        """Stores a commit and returns its id; moves no ref. `timestamp`: epoch seconds UTC.

        The same arguments give the same commit. With it goes, in one write, all that was made for
        it. Raises CheckpointMissing for a tree or parent that is not there, OSError.
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
        """The tree id of a commit. Raises CheckpointMissing."""
        return self._read_commit(commit)[0].tree

    def has_commit(self, commit: str) -> bool:
        """Whether the commit itself is there."""
        try:
            self.tree_id(commit)
        except CheckpointMissing:
            return False
        return True

    def is_intact(self, commit: str) -> bool:
        """Whether a checkpoint and every file in it can be read: what a lost or failing disk or a
        power cut took shows here.
        """
        return any(self.intact_commits([commit]))

    def intact_commits(self, commits: Iterable[str]) -> Iterator[str]:
        """Those of some checkpoints that are whole, in their order.

        A file that several have is read once, and indexes that are lost are made anew once.
        """
        read: set[str] = set()
        is_mended = False
        for commit in commits:
            intact = self._check_intact(commit, read)
            if not intact and not is_mended and self.path.is_dir():
                # A pack that lost its index still has all that was in it.
                intact = mend_indexes(self.path) and self._check_intact(commit, read)
                is_mended = True
            if intact:
                yield commit

    def _check_intact(self, commit: str, read: set[str]) -> bool:
        sharded_tree.clear_cache()
        try:
            self.store.reload()
            for entry in self.files(self.tree_id(commit)).walk():
                if entry.kind != "folder" and entry.id not in read:
                    # A header alone shows no damage: a step that needs the file would
                    # find it missing, and the job go back to where it stands, for ever.
                    self.store.read_stored(bytes.fromhex(entry.id))
                    read.add(entry.id)
        except CheckpointMissing:
            return False
        return True

    def log(self, commit: str, limit: int) -> list[LogEntry]:
        """At most `limit` checkpoints from a commit back along first parents.

        Raises CheckpointMissing for the commit itself; a history that breaks off later is short.
        """
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
        """Whether what a checkpoint followed is not here. Raises CheckpointMissing for itself."""
        _, parent = self._read_commit(commit)
        return parent is not None and not self.has_commit(parent)

    def tag(self, name: str, commit: str) -> None:
        """Points `refs/tags/<name>` at a commit, in place of what it pointed at; fsynced.

        Raises CheckpointMissing, ValueError for a name git does not take.
        """
        if not pygit2.reference_is_valid_name(f"refs/tags/{name}"):
            raise ValueError(f"{name!r} cannot be the name of a tag.")
        self.set_ref(f"refs/tags/{name}", commit)

    def set_ref(self, name: str, commit: str) -> None:
        """The same for any ref whose name git takes. Raises CheckpointMissing."""
        self._read_commit(commit)
        ref = self.path / name
        with ExitStack() as stack:
            # Held so long only by a process that is frozen. What follows is whole without it: the
            # lock spares two writers the trouble of taking each other's draft away.
            with suppress(TimeoutError):
                stack.enter_context(file_lock(self.path / "longhaul-refs.lock", seconds=2))
            ref.parent.mkdir(parents=True, exist_ok=True)
            # Every writer holds our lock, which died with its holder: git's own is left over.
            lock = ref.with_name(f"{ref.name}.lock")
            lock.unlink(missing_ok=True)
            with path_in_errors(lock):
                lock.write_text(f"{commit}\n")
            fsync_path(lock)
            lock.rename(ref)
            fsync_path(ref.parent)

    def tags(self) -> dict[str, str]:
        """Commit ids by tag name, sorted by name; a tag that is damaged is left out.

        Raises CheckpointMissing, OSError.
        """
        commits = {}
        prefix = "refs/tags/"
        # What may not be read libgit2 leaves out without a word.
        with suppress(FileNotFoundError):
            for folder, _, names in os.walk(self.path / prefix, onerror=_raise_error):
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
        """Packs the journal; see `pack_journal`.

        What another packer keeps from being packed is on the disk (fsync) all the same.
        """
        self.store.flush()
        try:
            pack_journal(self.path, wait=wait)
        except TimeoutError:
            self.store.journal.sync()
            raise
        self.store.journal.refresh()

    @property
    def is_full(self) -> bool:
        """Whether so much waits in the journal that it is time for a pack."""
        return self.store.journal.is_full

    def _read_commit(self, commit: str) -> tuple[LogEntry, str | None]:
        """A commit and its first parent."""
        try:
            # From the disk: a repository that was lost shows at the next step.
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


def _raise_error(error: OSError) -> None:
    raise error


class _HandleCache(threading.local):
    def __init__(self) -> None:
        self.by_path: OrderedDict[tuple[Path, int], Checkpoints] = OrderedDict()


_handles = _HandleCache()


def open_checkpoints(root: Root, job: str, *, create: bool = False) -> Checkpoints:
    """This thread's handle on a job's repository; the 64 used last are kept open.

    With `create` the repository is made if need be; else raises CheckpointMissing without one.
    """
    path = root.repository(job)
    cache = _handles.by_path
    with suppress(FileNotFoundError):
        # By inode as well: a repository that was lost and made anew needs a new handle.
        key = (path, path.stat().st_ino)
        if key not in cache:
            cache[key] = Checkpoints(path)
        cache.move_to_end(key)
        while len(cache) > HANDLES_PER_THREAD:
            cache.popitem(last=False)
        return cache[key]
    if not create:
        raise CheckpointMissing("", f"There is no checkpoint repository at {path}.")
    Checkpoints.create(root, job)
    return open_checkpoints(root, job)
