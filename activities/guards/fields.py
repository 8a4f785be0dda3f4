"""Fields of JSON files before and after a call: which agent may change which is a guard's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from activities.checkpoints import Entry, Files, diff
from config.schema.guards import FieldMatch

NAMES = ("id", "name", "key")
"""Keys by which the entries of a list are told apart, so that moving one changes nothing."""


def changed_field(before: Files, after: Files, match: FieldMatch) -> str | None:
    """`feature-list.json: login.tested`, the first such field that differs, or None."""
    for change in diff(before, after):
        if not any(fnmatchcase(change.path, pattern) for pattern in match.path):
            continue
        if change.new is not None and change.new.kind == "link":
            # What it leads to could be changed under another name.
            return f"{change.path}, which became a link"
        old = _fields(before, change.old, match.field)
        new = _fields(after, change.new, match.field)
        for place in sorted(old.keys() | new.keys()):
            # Absent, null and false all say the same: not set.
            if (old.get(place) or None) != (new.get(place) or None):
                return f"{change.path}: {place}"
    return None


def _fields(files: Files, entry: Entry | None, field: str) -> dict[str, Any]:
    if entry is None or entry.kind != "file":
        return {}
    try:
        content = json.loads(files.content(entry), object_pairs_hook=_each)
        return dict(_found(content, (), tuple(field.split("."))))
    except (ValueError, RecursionError):
        return {}


def _each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of which each value of a key that stands twice counts.

    Such a key is read in one way by one reader and in another by the next.
    """
    made: dict[str, list[Any]] = {}
    for key, value in pairs:
        made.setdefault(key, []).append(value)
    return {key: values if len(values) > 1 else values[0] for key, values in made.items()}


def _found(value: Any, at: tuple[str, ...], field: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if at and _is(at, field):
        yield ".".join(at), value
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _found(inner, (*at, str(key)), field)
    elif isinstance(value, list):
        seen: dict[str, int] = {}
        for place, inner in enumerate(value):
            name = _name(inner) or str(place)
            seen[name] = seen.get(name, 0) + 1
            yield from _found(inner, (*at, name if seen[name] == 1 else f"{name}#{place}"), field)


def _is(at: tuple[str, ...], field: tuple[str, ...]) -> bool:
    if len(field) == 1:
        return at[-1] == field[0]
    return len(at) == len(field) and all(
        want in ("*", have) for want, have in zip(field, at, strict=True)
    )


def _name(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return None
    return next((f"{entry[key]}" for key in NAMES if isinstance(entry.get(key), (str, int))), None)
