"""Copies checkpoints from one repository into another, with their whole history."""

from activities.checkpoints import sharded_tree
from activities.checkpoints.errors import CheckpointMissing
from activities.checkpoints.repository import Checkpoints, LogEntry
from activities.checkpoints.sharded_tree import FOLDER

MAX_HISTORY = 1_000_000


def copy_checkpoint(target: Checkpoints, source: Checkpoints, commit: str) -> list[LogEntry]:
    """Copies a checkpoint and everything it was made from; ids stay the same.

    Nothing is shared: the source may be removed afterwards. Doing it twice, or after a kill half
    way, writes the same objects again. Costs what is reachable: each tree and file once.

    Returns:
        The history that was copied, newest first.

    Raises:
        CheckpointMissing: a part of it is not in the source.
    """
    source.store.reload()  # what this process has in memory may be lost on the disk
    history = source.log(commit, MAX_HISTORY)
    visited: set[bytes] = set()
    parents: list[str] = []
    for entry in reversed(history):
        _copy_tree(target, source, bytes.fromhex(entry.tree), visited)
        copied = target.commit(entry.tree, parents, entry.message, entry.timestamp)
        if copied != entry.id:
            # The steps before are lost, and an id says what came before it.
            raise CheckpointMissing(entry.id, f"The steps before {entry.id} are missing.")
        parents = [copied]
    return history


def _copy_tree(target: Checkpoints, source: Checkpoints, tree: bytes, visited: set[bytes]) -> None:
    todo = [(FOLDER, tree)]
    while todo:
        mode, oid = todo.pop()
        if oid in visited:
            continue
        visited.add(oid)
        data = source.store.read(oid)
        if mode == FOLDER:
            target.store.write_tree(data)
            todo += sharded_tree.parse_tree(data).values()
        else:
            target.store.write_blob(data)
