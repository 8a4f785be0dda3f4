"""The difference of two trees, at the cost of what differs."""

from collections.abc import Iterator
from dataclasses import dataclass

from activities.checkpoints import sharded_tree
from activities.checkpoints.files import Entry, Files
from activities.checkpoints.names import to_bytes, unescape
from activities.checkpoints.objects import EMPTY_TREE
from activities.checkpoints.sharded_tree import FOLDER, Raw


@dataclass(frozen=True, slots=True)
class Change:
    """What lies at a path before and after; None where nothing does."""

    path: str
    old: Entry | None
    new: Entry | None


def diff(old: Files | None, new: Files) -> Iterator[Change]:
    """The paths at which two trees differ, in the order of `Files.walk`; None is no tree at all.

    Compares what `walk` yields: files, links and empty folders. A folder that is there on both
    sides, empty or not, is no change of its own: what came or went in it is.
    """
    before = Raw(FOLDER, bytes.fromhex(old.id)) if old else Raw(FOLDER, EMPTY_TREE)
    after = Raw(FOLDER, bytes.fromhex(new.id))
    stack: list[tuple[tuple[str, ...], Raw | None, Raw | None]] = [((), before, after)]
    while stack:
        parts, was, now = stack.pop()
        was_folder, now_folder = _is_folder(was), _is_folder(now)
        if parts and not (was_folder and now_folder):
            gone, come = _leaf(was), _leaf(now)
            if gone or come:
                path = "/".join(parts)
                yield Change(
                    path,
                    (old or new).entry_of(parts, gone) if gone else None,
                    new.entry_of(parts, come) if come else None,
                )
        below = sharded_tree.differences(
            new.store,
            was.id if was and was_folder else EMPTY_TREE,
            now.id if now and now_folder else EMPTY_TREE,
        )
        named = [(unescape(name), left, right) for name, left, right in below]
        named.sort(key=lambda item: to_bytes(item[0]), reverse=True)
        stack += [((*parts, name), left, right) for name, left, right in named]


def _is_folder(raw: Raw | None) -> bool:
    return raw is not None and raw.mode == FOLDER


def _leaf(raw: Raw | None) -> Raw | None:
    """The entry if `walk` would yield it: not for a folder that holds something."""
    return None if raw is not None and raw.mode == FOLDER and raw.id != EMPTY_TREE else raw
