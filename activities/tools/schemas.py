"""JSON Schemas of servers as endpoints take them: one they refuse fails every request with it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

MANY = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords under which schemas have names of somebody's choice."""
CHOICES = ("allOf", "anyOf", "oneOf")
NOT_AT_THE_TOP = {*CHOICES, "enum", "not"}


def offerable(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with what OpenAI's endpoints demand: no alternatives at the top, each list with
    its items. What of it is lost here is still checked when a tool is called."""
    made = _each(schema, _with_items)
    properties = dict(made.get("properties") or {})
    for branch in (one for key in CHOICES for one in made.get(key) or []):
        if isinstance(branch, dict):
            for name, field in (branch.get("properties") or {}).items():
                properties.setdefault(name, field)
    kept = {key: value for key, value in made.items() if key not in NOT_AT_THE_TOP}
    return {**kept, "properties": properties}


def without_keywords(schema: dict[str, Any], keywords: Collection[str]) -> dict[str, Any]:
    """The schema without these keywords, wherever they stand."""
    return _each(schema, lambda one: {k: v for k, v in one.items() if k not in keywords})


def _with_items(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    lists = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return {**schema, "items": {}} if lists and "items" not in schema else schema


def _each(
    schema: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    """The schema with a change made in it and in all that it is made of."""

    def inside(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            if key in MANY:
                return {name: inside("", one) for name, one in value.items()}
            # What stands there is no schema but a value.
            return value if key in ("default", "const", "example") else _each(value, change)
        if isinstance(value, list) and key not in ("enum", "default", "const", "examples"):
            return [inside("", one) for one in value]
        return value

    return {key: inside(key, value) for key, value in change(schema).items()}
