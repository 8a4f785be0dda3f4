"""Fields of JSON files before and after a call, for guards on who may change which field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from activities.checkpoints import FileEntry, Files, diff_files
from config.schema.guards import FieldMatch

NAMES = ("id", "name", "key")
"""Keys that identify the entries of a list, so that moving an entry changes nothing."""


def find_field_change(before: Files, after: Files, match: FieldMatch) -> str | None:
    """Return the first such field that differs, as `feature-list.json: login.tested`, or None."""
    for change in diff_files(before, after):
        if not any(fnmatchcase(change.path, pattern) for pattern in match.path):
            continue
        if change.new is not None and change.new.kind == "link":
            # Another name might lead to the same file.
            return f"{change.path}, which became a link"
        old = _json_field_values(before, change.old, match.field)
        new = _json_field_values(after, change.new, match.field)
        for place in sorted(old.keys() | new.keys()):
            # Absent, null and false all mean: not set.
            if (old.get(place) or None) != (new.get(place) or None):
                return f"{change.path}: {place}"
    return None


def _json_field_values(files: Files, entry: FileEntry | None, field: str) -> dict[str, Any]:
    if entry is None or entry.kind != "file":
        return {}
    try:
        content = json.loads(files.read_entry(entry), object_pairs_hook=_keep_repeated_json_fields)
        return dict(_find_field_values(content, (), tuple(field.split("."))))
    except (ValueError, RecursionError):
        return {}


def _keep_repeated_json_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Keep all values of a key that occurs twice in an object.

    One reader takes the first of them and another the last.
    """
    collected: dict[str, list[Any]] = {}
    for key, value in pairs:
        collected.setdefault(key, []).append(value)
    return {key: values if len(values) > 1 else values[0] for key, values in collected.items()}


def _find_field_values(
    value: Any, path: tuple[str, ...], field: tuple[str, ...]
) -> Iterator[tuple[str, Any]]:
    if path and _matches_field(path, field):
        yield ".".join(path), value
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _find_field_values(inner, (*path, str(key)), field)
    elif isinstance(value, list):
        counts: dict[str, int] = {}
        for place, inner in enumerate(value):
            name = _field_entry_name(inner) or str(place)
            counts[name] = counts.get(name, 0) + 1
            yield from _find_field_values(
                inner, (*path, name if counts[name] == 1 else f"{name}#{place}"), field
            )


def _matches_field(path: tuple[str, ...], field: tuple[str, ...]) -> bool:
    if len(field) == 1:
        return path[-1] == field[0]
    return len(path) == len(field) and all(
        want in ("*", have) for want, have in zip(field, path, strict=True)
    )


def _field_entry_name(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return None
    return next((f"{entry[key]}" for key in NAMES if isinstance(entry.get(key), (str, int))), None)
