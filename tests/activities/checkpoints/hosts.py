"""Hosts that share a remote for checkpoints."""

from pathlib import Path

from activities.checkpoints import Checkpoints, Root, open_checkpoints
from activities.checkpoints.git_remote import REFS
from activities.checkpoints.journal import PushStaging
from activities.checkpoints.object_store import EMPTY_TREE
from activities.checkpoints.remote import push_to_remote, remote_checkpoint_area
from activities.checkpoints.remote_fetch import fetch_remote_checkpoints

AT = 1_700_000_000


class Host:
    """A host with its own root, and a job that takes its steps here."""

    def __init__(self, path: Path, address: str, job: str = "job") -> None:
        self.root = Root.open(path, create=True)
        self.url, self.job = address, job
        self.outgoing = PushStaging(self.root.repository(job))

    @property
    def checkpoints(self) -> Checkpoints:
        return open_checkpoints(self.root, self.job, create=True)

    def step(self, parent: str | None, *paths: str, text: str = "tea\n") -> str:
        store = self.checkpoints
        tree = store.tree_id(parent) if parent else store.files(EMPTY_TREE.hex()).id
        files = store.files(tree)
        for path in paths:
            files = files.write(path, f"{path}: {text}".encode())
        return store.commit(files.id, [parent] if parent else [], f"step {paths}", AT)

    def push(self, commit: str, run: str = "run", **made: str) -> None:
        moved = {f"runs/{run}/{self.root.id}": commit}
        push_to_remote(
            self.url, self.job, self.checkpoints.path, self.outgoing.stage(), moved,
            {name.replace("_", "/"): value for name, value in made.items()},
        )  # fmt: skip

    def fetch(self, *, anew: bool = False) -> None:
        fetch_remote_checkpoints(self.url, self.job, self.checkpoints, refetch=anew)


def remote_ref_prefix(job: str) -> str:
    """Return the common prefix of a job's refs in a git repository."""
    return f"{REFS}{remote_checkpoint_area(job)}/"
