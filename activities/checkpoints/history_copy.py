"""Copy checkpoints from one repository into another, with their whole history."""

import pygit2

from activities.checkpoints import sharded_tree
from activities.checkpoints.alternates import has_alternates
from activities.checkpoints.checkpoint_errors import CheckpointMissing
from activities.checkpoints.checkpoint_repository import Checkpoints, LogEntry
from activities.checkpoints.sharded_tree import FOLDER

MAX_HISTORY = 1_000_000


def copy_checkpoint(target: Checkpoints, source: Checkpoints, commit: str) -> list[LogEntry]:
    """Copy a checkpoint and everything reachable from it; ids stay the same.

    The copy shares nothing with the source, which may be removed afterwards. Objects that the
    target borrows from another repository are not copied. Repeating the copy, also after a kill,
    writes the same objects. The cost is the reachable content: each tree and file once.

    Returns:
        The copied history, newest first.

    Raises CheckpointMissing.
    """
    source.store.reload()  # An object in this process's memory may be lost on disk.
    history = source.log(commit, MAX_HISTORY)
    visited: set[bytes] = set()
    borrows = has_alternates(target.path)
    parents: list[str] = []
    for entry in reversed(history):
        _copy_history_tree(target, source, bytes.fromhex(entry.tree), visited, borrows=borrows)
        copied = target.commit(entry.tree, parents, entry.message, entry.timestamp)
        if copied != entry.id:
            # Earlier steps are lost; commit ids still record that they existed.
            raise CheckpointMissing(entry.id, f"The steps before {entry.id} are missing.")
        parents = [copied]
    return history


def _copy_history_tree(
    target: Checkpoints, source: Checkpoints, tree: bytes, visited: set[bytes], *, borrows: bool
) -> None:
    todo = [(FOLDER, tree)]
    while todo:
        mode, oid = todo.pop()
        if oid in visited:
            continue
        visited.add(oid)
        if mode == FOLDER:
            data = source.store.read(oid)
            target.store.write_tree(data)
            todo += sharded_tree.parse_tree_shard(data).values()
        elif not (borrows and pygit2.Oid(raw=oid) in target.store.git):
            target.store.write_blob(source.store.read(oid))
