"""One folder as git trees: flat up to 256 entries, above that a hash trie.

A node of the trie holds the entries below it flat if and only if they are at most 256; otherwise
sixteen buckets `%s<digit>`, by the next hex digit of sha1(entry name), and a marker `%n<count>`
(an empty blob) with the number of entries below. The form depends on the content alone, so equal
folders have equal ids whatever their history, and a change reads and writes one path of nodes.
"""

import hashlib
import re
from collections.abc import Iterator
from typing import NamedTuple

from activities.checkpoints.cache import Cache
from activities.checkpoints.objects import EMPTY_TREE, Store

FLAT_LIMIT = 256
FILE, EXECUTABLE, LINK, FOLDER = 0o100644, 0o100755, 0o120000, 0o40000
_ENTRY = re.compile(rb"([0-7]+) ([^\0]+)\0(.{20})", re.DOTALL)


class Raw(NamedTuple):
    """A tree entry: git mode and object id (20 bytes)."""

    mode: int
    id: bytes


Node = dict[bytes, Raw]  # by escaped entry name


_parsed: Cache[bytes, Node] = Cache(200_000, len)  # entries: some 40 MB
"""Trees as they were read or written last, by id."""


def forget() -> None:
    """Read every tree anew from now on: for whoever asks whether it is still there."""
    _parsed.forget()


def get(store: Store, folder: bytes, name: bytes) -> Raw | None:
    """The entry of that escaped name, or None."""
    node = _load(store, folder)
    depth = 0
    while _count(node) is not None:
        bucket = node.get(b"%s" + _digit(name, depth))
        if bucket is None:
            return None
        node = _load(store, bucket.id)
        depth += 1
    return node.get(name)


def put(store: Store, folder: bytes, name: bytes, raw: Raw | None) -> bytes:
    """The folder with that entry set, or without it for None. Returns the new folder's id."""
    return _put(store, folder, name, raw, 0)[0]


def build(store: Store, entries: Node, depth: int = 0) -> bytes:
    """The id of a folder with these entries, made at once."""
    if len(entries) <= FLAT_LIMIT:
        return _store(store, entries)
    node = {b"%%n%d" % len(entries): Raw(FILE, store.write_blob(b""))}
    for digit, below in _split(entries, depth).items():
        node[b"%s" + digit] = Raw(FOLDER, build(store, below, depth + 1))
    return _store(store, node)


def entries(store: Store, folder: bytes) -> Node:
    """All entries of a folder by escaped name, in no order."""
    node = _load(store, folder)
    if _count(node) is None:
        return dict(node)
    return {
        name: raw
        for bucket in _buckets(node).values()
        for name, raw in entries(store, bucket.id).items()
    }


def parsed(tree: bytes) -> Node:
    """The entries of a single git tree as it is stored: buckets and markers among them."""
    return {name: Raw(int(mode, 8), oid) for mode, name, oid in _ENTRY.findall(tree)}


def differences(
    store: Store, old: bytes, new: bytes
) -> Iterator[tuple[bytes, Raw | None, Raw | None]]:
    """(escaped name, old, new) of the entries of one folder that differ, in no order."""
    return _differences(store, old, new, 0)


def _differences(
    store: Store, old: bytes | Node, new: bytes | Node, depth: int
) -> Iterator[tuple[bytes, Raw | None, Raw | None]]:
    if old == new:
        return
    before, after = (_load(store, side) if isinstance(side, bytes) else side for side in (old, new))
    if _count(before) is None and _count(after) is None:
        for name in before.keys() | after.keys():
            if before.get(name) != after.get(name):
                yield name, before.get(name), after.get(name)
        return
    olds, news = _sides(before, depth), _sides(after, depth)
    for digit in olds.keys() | news.keys():
        yield from _differences(
            store, olds.get(digit, EMPTY_TREE), news.get(digit, EMPTY_TREE), depth + 1
        )


def _sides(node: Node, depth: int) -> dict[bytes, bytes | Node]:
    if _count(node) is None:
        return dict(_split(node, depth))
    return {digit: raw.id for digit, raw in _buckets(node).items()}


def _put(
    store: Store, folder: bytes, name: bytes, raw: Raw | None, depth: int
) -> tuple[bytes, int]:
    """The new node and by how much its count of entries changed."""
    node = dict(_load(store, folder))
    total = _count(node)
    if total is None:
        before = len(node)
        if raw is None:
            node.pop(name, None)
        else:
            node[name] = raw
        return build(store, node, depth), len(node) - before
    key = b"%s" + _digit(name, depth)
    below, change = _put(store, node.get(key, Raw(FOLDER, EMPTY_TREE)).id, name, raw, depth + 1)
    node.pop(key, None)
    if below != EMPTY_TREE:
        node[key] = Raw(FOLDER, below)
    if total + change <= FLAT_LIMIT:
        flat: Node = {}
        for bucket in _buckets(node).values():
            flat |= entries(store, bucket.id)
        return _store(store, flat), change
    node[b"%%n%d" % (total + change)] = node.pop(b"%%n%d" % total)
    return _store(store, node), change


def _load(store: Store, folder: bytes) -> Node:
    """The entries of one tree, shared: whoever changes them copies them first."""
    if folder == EMPTY_TREE:
        return {}
    if (node := _parsed.get(folder)) is not None:
        return node
    return _parsed.keep(folder, parsed(store.read(folder)))


def _store(store: Store, node: Node) -> bytes:
    # Git sorts a folder as if its name ended in a slash.
    ordered = sorted(
        [(name + b"/" if raw.mode == FOLDER else name, name, raw) for name, raw in node.items()]
    )
    parts = [b"%o %b\0%b" % (raw.mode, name, raw.id) for _, name, raw in ordered]
    tree = store.write_tree(b"".join(parts))
    if _parsed.get(tree) is None:
        _parsed.keep(tree, {name: raw for _, name, raw in ordered})
    return tree


def _count(node: Node) -> int | None:
    """The count in a sharded node's marker, None for a flat one."""
    # In a sharded node the marker sorts first; dictionaries here may have been changed since.
    for name in node:
        if name.startswith(b"%n"):
            return int(name[2:])
        if not name.startswith(b"%s"):
            return None
    return None


def _buckets(node: Node) -> Node:
    return {name[2:]: raw for name, raw in node.items() if name.startswith(b"%s")}


def _split(node: Node, depth: int) -> dict[bytes, Node]:
    parts: dict[bytes, Node] = {}
    for name, raw in node.items():
        parts.setdefault(_digit(name, depth), {})[name] = raw
    return parts


def _digit(name: bytes, depth: int) -> bytes:
    return hashlib.sha1(name).hexdigest()[depth].encode()
