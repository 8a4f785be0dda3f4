"""Arguments of a tool call as JSON text: detect their end, and parse them as an object."""

import json
import re
from typing import Any

from pydantic_core import from_json

MARKS = re.compile(r'[\\"{}\[\]]')
MAX_VALUES = 20
MAX_STRINGS = 3
"""Deepest nesting of strings in strings that is opened."""
EMPTY = "{}"


class GrowingJsonText:
    """Text that arrives in pieces. Each piece is scanned once, and only on demand."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._scanned = 0
        self._depth = 0
        self._in_string = False
        self._is_escaped = False
        self._is_whole = False

    def add(self, part: str) -> None:
        """Append a piece. Leading white space and a null are ignored."""
        if self._parts or (part.strip() and part.strip() != "null"):
            self._parts.append(part)

    @property
    def is_empty(self) -> bool:
        return not self._parts

    @property
    def is_whole(self) -> bool:
        """Whether the first value, an object or a string, is complete: its brackets are balanced.

        It need not be valid JSON: a model's mistake ends where its value ends.
        """
        while self._scanned < len(self._parts) and not self._is_whole:
            self._scan(self._parts[self._scanned])
            self._scanned += 1
        return self._is_whole

    def _scan(self, part: str) -> None:
        start = int(self._is_escaped)
        self._is_escaped = self._is_escaped and not part
        for match in MARKS.finditer(part, start):
            if match.start() < start:
                continue
            mark = match[0]
            if mark == "\\":
                start = match.end() + 1
                self._is_escaped = start > len(part)
            elif mark == '"':
                self._in_string = not self._in_string
                self._is_whole |= not self._in_string and self._depth == 0
            elif not self._in_string:
                self._depth += 1 if mark in "{[" else -1
                self._is_whole |= self._depth <= 0
            if self._is_whole:
                return

    def __str__(self) -> str:
        return "".join(self._parts)


def begins_json_value(text: str) -> bool:
    return text.lstrip()[:1] in ("{", '"')


def json_arguments_object(text: str) -> str:
    """Return the arguments as one object; the text itself if they are none.

    Some endpoints send the object inside a string, twice, or after an empty one.
    """
    if not text.strip() or text.strip() == "null":
        return EMPTY
    with_value = _parse_json(text)
    if isinstance(with_value, dict):
        return text
    if isinstance(with_value, str):
        return _unwrap_object(with_value) or text
    distinct = {_canonical_json_text(value): raw for value, raw in _split_json_objects(text)}
    if len(distinct) > 1:
        distinct.pop(EMPTY, None)
    return distinct.popitem()[1] if len(distinct) == 1 else text


def is_json_object(text: str) -> bool:
    return isinstance(_parse_json(text), dict)


def canonical_json_arguments(text: str) -> str:
    """Return one spelling for all spellings of an object; other text unchanged."""
    value = _parse_json(text)
    return _canonical_json_text(value) if isinstance(value, dict) else text


def _parse_json(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        return None


def _unwrap_object(text: str) -> str | None:
    for _ in range(MAX_STRINGS):
        value = _parse_json(text)
        if isinstance(value, dict):
            return text
        if not isinstance(value, str):
            break
        text = value
    return None


def _split_json_objects(text: str) -> list[tuple[dict[str, Any], str]]:
    values: list[tuple[dict[str, Any], str]] = []
    decoder, place = json.JSONDecoder(), 0
    text = text.strip()
    while place < len(text) and len(values) < MAX_VALUES:
        try:
            value, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            return []
        raw = text[place:end] if isinstance(value, dict) else _unwrap_object(text[place:end])
        if raw is None or not is_json_object(raw):
            return []
        values.append((from_json(raw), raw))
        place = len(text) - len(text[end:].lstrip())
    return values if place >= len(text) else []


def _canonical_json_text(value: dict[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
