"""One folder as git trees: flat up to 256 entries, above that a hash trie.

A node of the trie holds its entries flat if and only if there are at most 256. Otherwise it has
sixteen buckets `%s<digit>`, by the next hex digit of sha1(entry name), and a marker `%n<count>` (an
empty blob) with the number of entries below it. The form depends on the content alone, so equal
folders have equal ids whatever their history, and a change touches one path of nodes.
"""

import hashlib
import re
from typing import NamedTuple

from activities.checkpoints.journal import Cache
from activities.checkpoints.object_store import EMPTY_TREE, ObjectStore

FLAT_LIMIT = 256
FILE, EXECUTABLE, LINK, FOLDER = 0o100644, 0o100755, 0o120000, 0o40000
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)


class TreeEntry(NamedTuple):
    """A tree entry: git mode and object id (20 bytes)."""

    mode: int
    id: bytes


Node = dict[bytes, TreeEntry]  # by escaped entry name


_node_cache: Cache[bytes, Node] = Cache(200_000, len)  # entries: about 40 MB
"""Recently read or written trees, by id."""


def clear_sharded_tree_cache() -> None:
    _node_cache.clear()


def get_sharded_tree_entry(store: ObjectStore, folder: bytes, name: bytes) -> TreeEntry | None:
    node = load_tree_node(store, folder)
    depth = 0
    while shard_entry_count(node) is not None:
        bucket = node.get(b"%s" + _shard_digit(name, depth))
        if bucket is None:
            return None
        node = load_tree_node(store, bucket.id)
        depth += 1
    return node.get(name)


def put_sharded_tree_entry(
    store: ObjectStore, folder: bytes, name: bytes, raw: TreeEntry | None
) -> bytes:
    return _put_in_tree_node(store, folder, name, raw, 0)[0]


def build_tree(store: ObjectStore, entries: Node, depth: int = 0) -> bytes:
    if len(entries) <= FLAT_LIMIT:
        return _store_tree_node(store, entries)
    node = {b"%%n%d" % len(entries): TreeEntry(FILE, store.write_blob(b""))}
    for digit, below in _split_into_shards(entries, depth).items():
        node[b"%s" + digit] = TreeEntry(FOLDER, build_tree(store, below, depth + 1))
    return _store_tree_node(store, node)


def list_tree_entries(store: ObjectStore, folder: bytes) -> Node:
    """Return all entries of a folder by escaped name, unordered."""
    node = load_tree_node(store, folder)
    if shard_entry_count(node) is None:
        return dict(node)
    return {
        name: raw
        for bucket in _shard_bucket_entries(node).values()
        for name, raw in list_tree_entries(store, bucket.id).items()
    }


def parse_tree_shard(tree: bytes) -> Node:
    """Return the entries of a single stored git tree, including buckets and markers."""
    return {name: TreeEntry(int(mode, 8), oid) for mode, name, oid in _ENTRY.findall(tree)}


def child_tree_nodes(node: Node, depth: int) -> dict[bytes, bytes | Node]:
    if shard_entry_count(node) is None:
        return dict(_split_into_shards(node, depth))
    return {digit: raw.id for digit, raw in _shard_bucket_entries(node).items()}


def _put_in_tree_node(
    store: ObjectStore, folder: bytes, name: bytes, raw: TreeEntry | None, depth: int
) -> tuple[bytes, int]:
    """Return the new node and the change in its number of entries."""
    node = dict(load_tree_node(store, folder))
    total = shard_entry_count(node)
    if total is None:
        before = len(node)
        if raw is None:
            node.pop(name, None)
        else:
            node[name] = raw
        return build_tree(store, node, depth), len(node) - before
    key = b"%s" + _shard_digit(name, depth)
    below, change = _put_in_tree_node(
        store, node.get(key, TreeEntry(FOLDER, EMPTY_TREE)).id, name, raw, depth + 1
    )
    node.pop(key, None)
    if below != EMPTY_TREE:
        node[key] = TreeEntry(FOLDER, below)
    if total + change <= FLAT_LIMIT:
        flat: Node = {}
        for bucket in _shard_bucket_entries(node).values():
            flat |= list_tree_entries(store, bucket.id)
        return _store_tree_node(store, flat), change
    node[b"%%n%d" % (total + change)] = node.pop(b"%%n%d" % total)
    return _store_tree_node(store, node), change


def load_tree_node(store: ObjectStore, folder: bytes) -> Node:
    """Return the entries of one tree. The result is shared: copy it before changing it."""
    if folder == EMPTY_TREE:
        return {}
    if (node := _node_cache.get(folder)) is not None:
        return node
    return _node_cache.put(folder, parse_tree_shard(store.read(folder)))


def _store_tree_node(store: ObjectStore, node: Node) -> bytes:
    ordered = _sort_shard_entries(node)
    tree = store.write_tree(_encode_tree_node(ordered))
    if _node_cache.get(tree) is None:
        _node_cache.put(tree, dict(ordered))
    return tree


def encode_tree_shard(node: Node) -> bytes:
    return _encode_tree_node(_sort_shard_entries(node))


def _sort_shard_entries(node: Node) -> list[tuple[bytes, TreeEntry]]:
    # Git sorts a folder as if its name ended in a slash.
    return sorted(
        node.items(), key=lambda item: item[0] + b"/" if item[1].mode == FOLDER else item[0]
    )


def _encode_tree_node(ordered: list[tuple[bytes, TreeEntry]]) -> bytes:
    return b"".join([b"%o %b\0%b" % (raw.mode, name, raw.id) for name, raw in ordered])


def shard_entry_count(node: Node) -> int | None:
    """Return the count in a sharded node's marker, None for a flat node."""
    # The marker sorts first on disk, but dictionaries here may have been changed since.
    for name in node:
        if name.startswith(b"%n"):
            return int(name[2:])
        if not name.startswith(b"%s"):
            return None
    return None


def _shard_bucket_entries(node: Node) -> Node:
    return {name[2:]: raw for name, raw in node.items() if name.startswith(b"%s")}


def _split_into_shards(node: Node, depth: int) -> dict[bytes, Node]:
    parts: dict[bytes, Node] = {}
    for name, raw in node.items():
        parts.setdefault(_shard_digit(name, depth), {})[name] = raw
    return parts


def _shard_digit(name: bytes, depth: int) -> bytes:
    return hashlib.sha1(name).hexdigest()[depth].encode()
