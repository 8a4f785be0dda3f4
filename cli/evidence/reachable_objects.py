"""The git objects that checkpoints consist of, read one by one and compared with their ids."""

import re
from collections.abc import Iterable, Iterator

from activities.checkpoints import CheckpointMissing
from activities.checkpoints.journal_records import BLOB, COMMIT, TREE, JournalRecord
from activities.checkpoints.object_store import EMPTY_TREE, ObjectStore
from activities.checkpoints.sharded_tree import FOLDER, parse_tree_shard

SUBMODULE = 0o160000
_LINK = re.compile(rb"^(tree|parent) ([0-9a-f]{40})$", re.MULTILINE)


def walk_reachable_objects(
    store: ObjectStore, commits: Iterable[str], missing: list[str]
) -> Iterator[JournalRecord]:
    """Yield every object reachable from the commits, each once and as its content says.

    Args:
        missing: Gets the ids of objects that are not there or not what their id says.
    """
    todo = [(COMMIT, bytes.fromhex(commit)) for commit in commits]
    visited = {EMPTY_TREE}
    while todo:
        kind, oid = todo.pop()
        if oid in visited:
            continue
        visited.add(oid)
        try:
            record = JournalRecord.create(kind, store.read_stored(oid))
        except CheckpointMissing:
            missing.append(oid.hex())
            continue
        if record.id != oid:
            missing.append(oid.hex())
            continue
        todo += _links(record)
        yield record


def _links(record: JournalRecord) -> list[tuple[int, bytes]]:
    if record.kind == COMMIT:
        head = record.data.partition(b"\n\n")[0]
        kinds = {b"tree": TREE, b"parent": COMMIT}
        return [(kinds[what], bytes.fromhex(oid.decode())) for what, oid in _LINK.findall(head)]
    if record.kind == TREE:
        return [
            (TREE if entry.mode == FOLDER else BLOB, entry.id)
            for entry in parse_tree_shard(record.data).values()
            if entry.mode != SUBMODULE
        ]
    return []
