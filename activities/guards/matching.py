"""Whether a guard applies to a situation; pure functions of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from activities.checkpoints import FileEntry, Files, FilesError, PathRefused, diff_files
from activities.guards.call_memory import matches_remembered_calls
from activities.job.conversation import Conversation
from activities.job.conversation_calls import list_tools_run
from activities.job.snapshot import Snapshot
from activities.redaction.secrets import is_secret
from activities.text.safe_text import split_lines
from config.regexes import compile_cached_regex, regexes_that_may_match
from config.schema.guards import FieldMatch, Guard, GuardPoint, Match
from protocol.phase import PhaseKind
from protocol.tools import READ_LINES

PATHS = {"move_file": ("old", "new")}
"""Path arguments of tools where the argument is not called `path`."""


@dataclass(frozen=True)
class GuardSituation:
    """What a guard decides on."""

    point: GuardPoint
    agent: str
    phase: PhaseKind
    files: Files
    tool: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    text: str = ""
    after: Files | None = None
    todo: str = ""
    conversation: Conversation | None = None
    calls: Files | None = None
    """The calls that guards remember."""
    time_ms: int | None = None
    """When the call is made; None if it is not known."""

    @classmethod
    def from_snapshot(
        cls,
        snapshot: Snapshot,
        point: GuardPoint,
        tool: str = "",
        arguments: dict[str, Any] | None = None,
        text: str = "",
        after: Files | None = None,
        time_ms: int | None = None,
    ) -> GuardSituation:
        phase = snapshot.state.phase
        todo = phase.current
        return cls(
            point,
            snapshot.config.name,
            phase.kind,
            snapshot.files,
            tool,
            arguments or {},
            text,
            after,
            todo.content if todo else "",
            snapshot.conversation,
            snapshot.calls,
            time_ms,
        )

    @property
    def tools_run(self) -> frozenset[str]:
        return list_tools_run(self.conversation) if self.conversation else frozenset()


def match_guard_groups(guard: Guard, now: GuardSituation) -> dict[str, str] | None:
    """Return the named groups of the argument patterns, or None if the guard does not apply."""
    match = guard.match
    if guard.point != now.point:
        return None
    # What a call changes is known only after it was tried, everything else before.
    if (match.changes is None) is not (now.after is None):
        return None
    if not (
        _matches_one_pattern(match.tool, now.tool)
        and _matches_one_pattern(match.agent, now.agent)
        and not (match.not_agent and _matches_one_pattern(match.not_agent, now.agent))
        and match.phase in (None, now.phase)
    ):
        return None
    groups = _match_arguments(match, now)
    if groups is None or not (_matches_path(match, now) and _guard_content_applies(match, now)):
        return None
    if match.todo is not None and not compile_cached_regex(match.todo).search(now.todo):
        return None
    if match.reads_lines is not None and (
        (count_lines_for_matching(now) or 0) <= match.reads_lines
    ):
        return None
    if match.changes and (
        now.after is None or not find_field_change(now.files, now.after, match.changes)
    ):
        return None
    if match.history and not (
        now.calls and matches_remembered_calls(match.history, now.calls, now.arguments, now.time_ms)
    ):
        return None
    # Last, because it reads the conversation.
    if match.not_ran and any(_matches_one_pattern(match.not_ran, tool) for tool in now.tools_run):
        return None
    return groups


def would_match_guard(guard: Guard, now: GuardSituation) -> bool:
    """Whether a guard of any point would be asked about this call and applies."""
    if guard.point not in ("before_tool", now.tool):
        return False
    return match_guard_groups(guard, replace(now, point=guard.point)) is not None


def _matches_one_pattern(patterns: list[str], name: str) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)


def _match_arguments(match: Match, now: GuardSituation) -> dict[str, str] | None:
    groups: dict[str, str] = {}
    for name, pattern in match.arguments.items():
        if name not in now.arguments:
            return None
        hit = compile_cached_regex(pattern).search(str(now.arguments[name]))
        if hit is None:
            return None
        groups |= {key: value or "" for key, value in hit.groupdict().items()}
    return groups


def _matches_path(match: Match, now: GuardSituation) -> bool:
    if not match.path:
        return True
    return any(
        _matches_one_pattern(match.path, path)
        for name in PATHS.get(now.tool, ("path",))
        if isinstance(path_argument := now.arguments.get(name), str)
        for path in _path_spellings(now.files, path_argument)
    )


def _path_spellings(files: Files, path: str) -> Iterator[str]:
    """Return the path as given, normalized, and with its links resolved."""
    yield path
    try:
        yield files.resolve_links(path)
    except (PathRefused, FilesError):
        return


def _guard_content_applies(match: Match, now: GuardSituation) -> bool:
    if not match.content and match.longer is None:
        return True
    if match.longer is not None and guard_matched_length(match, now) <= match.longer:
        return False
    return not match.content or any(
        _matches_guard_content(text, match) for text in _examined_texts(match, now)
    )


def guard_matched_length(match: Match, now: GuardSituation) -> int:
    return sum(map(len, _examined_texts(match, now)))


def _examined_texts(match: Match, now: GuardSituation) -> list[str]:
    if now.point in ("reply", "after_tool"):
        return [now.text]
    # Without argument names, which are in every call.
    values = (value for name, value in now.arguments.items() if name not in match.ignoring)
    return [text for value in values for text in _argument_texts_to_match(value)]


def _argument_texts_to_match(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from _argument_texts_to_match(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _argument_texts_to_match(inner)


def count_lines_for_matching(now: GuardSituation) -> int | None:
    """Return how many lines a read would return, and the file's total; None if unreadable."""
    try:
        data = now.files.read(str(now.arguments.get("path", "")))
    except (PathRefused, FilesError):
        return None
    line_count = len(split_lines(data.decode(errors="replace")))
    if "offset" not in now.arguments and "limit" not in now.arguments:
        return line_count
    try:
        # The tool also accepts "5000" and 5000.0, so the guard must.
        return min(line_count, int(float(now.arguments.get("limit", READ_LINES))))
    except (TypeError, ValueError, OverflowError):
        return None


def _matches_guard_content(text: str, match: Match) -> bool:
    return any(
        "value" not in compile_cached_regex(pattern).groupindex or is_secret(hit, match.random or 0)
        for pattern in regexes_that_may_match(tuple(match.content), text)
        for hit in compile_cached_regex(pattern).finditer(text)
    )


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
    """Keep all values of a doubled key: one reader takes the first of them and another the last."""
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
