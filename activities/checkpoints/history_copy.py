"""Copies checkpoints from one repository into another, with their whole history."""

import pygit2

from activities.checkpoints import sharded_tree
from activities.checkpoints.alternates import has_alternates
from activities.checkpoints.errors import CheckpointMissing
from activities.checkpoints.repository import Checkpoints, LogEntry
from activities.checkpoints.sharded_tree import FOLDER

MAX_HISTORY = 1_000_000


def copy_checkpoint(target: Checkpoints, source: Checkpoints, commit: str) -> list[LogEntry]:
    """Copies a checkpoint and everything it was made from; ids stay the same.

    Nothing is shared with the source, which may be removed afterwards; what the target borrows from
    another repository is left there. Doing it twice, or after a kill half
    way, writes the same objects again. Costs what is reachable: each tree and file once.

    Returns:
        The history that was copied, newest first.

    Raises:
        CheckpointMissing: a part of it is not in the source.
    """
    source.store.reload()  # what this process has in memory may be lost on the disk
    history = source.log(commit, MAX_HISTORY)
    visited: set[bytes] = set()
    borrows = has_alternates(target.path)
    parents: list[str] = []
    for entry in reversed(history):
        _copy_tree(target, source, bytes.fromhex(entry.tree), visited, borrows=borrows)
        copied = target.commit(entry.tree, parents, entry.message, entry.timestamp)
        if copied != entry.id:
            # The steps before are lost, and an id says what came before it.
            raise CheckpointMissing(entry.id, f"The steps before {entry.id} are missing.")
        parents = [copied]
    return history


def _copy_tree(
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
            todo += sharded_tree.parse_tree(data).values()
        elif not (borrows and pygit2.Oid(raw=oid) in target.store.git):
            target.store.write_blob(source.store.read(oid))
