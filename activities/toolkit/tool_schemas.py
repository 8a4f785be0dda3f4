"""Adapts servers' JSON Schemas to endpoints: one refused schema fails every request."""

import json
from collections.abc import Callable, Collection
from copy import deepcopy
from typing import Any

from protocol.short_text import first_few

MANY = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords that map arbitrary names to schemas."""
CHOICES = ("allOf", "anyOf", "oneOf")
BOUNDS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " entries"),
)
BEYOND = {"exclusiveMinimum": "above", "exclusiveMaximum": "below"}
MAX_VALUES = 50
MAX_DEPTH = 5
NOT_AT_THE_TOP = {*CHOICES, "enum", "not"}
STRICT = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("description", "title", "anyOf", "$ref", "$defs", "pattern", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
    }
)
"""Keywords that OpenAI's endpoints support in strict schemas:
https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas"""


def offerable_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema as endpoints accept it: no alternatives at the top, items for each list,
    and no regular expressions. Constraints lost here are still checked when a tool is called."""
    expanded = _map_schema(without_keywords(schema, NO_GRAMMAR), _add_schema_items)
    properties = dict(expanded.get("properties") or {})
    for branch in (choice for key in CHOICES for choice in expanded.get(key) or []):
        if isinstance(branch, dict):
            for name, field in (branch.get("properties") or {}).items():
                properties.setdefault(name, field)
    allowed = {key: value for key, value in expanded.items() if key not in NOT_AT_THE_TOP}
    return {**allowed, "properties": properties}


def schema_argument_facts(field: Any, root_schema: dict[str, Any], deep: int = 0) -> list[str]:
    """Return an argument's values, bounds and default as text for its documentation."""
    if not isinstance(field, dict) or deep > MAX_DEPTH:
        return []
    described = []
    if isinstance(values := field.get("enum"), list):
        described.append(f"one of {first_few([str(each)[:80] for each in values], MAX_VALUES)}")
    if isinstance(pattern := field.get("pattern"), str) and pattern not in (r"\S", ".+"):
        described.append(f"matching {pattern[:80]}")
    for least, most, unit in BOUNDS:
        described += _tool_schema_bound_facts(field.get(least), field.get(most), unit)
    described += [
        f"{word} {_format_tool_schema_bound(field[key])}"
        for key, word in BEYOND.items()
        if _is_tool_schema_bound(field.get(key))
    ]
    if isinstance(fields := field.get("properties"), dict) and deep:
        required = field.get("required") or ()
        names = [name if name in required else f"{name}?" for name in fields]
        described.append(f"with {first_few(names, MAX_VALUES)}")
    parts = [choice for key in CHOICES if isinstance(field.get(key), list) for choice in field[key]]
    if str(named := field.get("$ref")).startswith("#/$defs/"):
        parts.append((root_schema.get("$defs") or {}).get(str(named).removeprefix("#/$defs/")))
    described += [
        fact for part in parts for fact in schema_argument_facts(part, root_schema, deep + 1)
    ]
    described += [
        f"each {fact}" for fact in schema_argument_facts(field.get("items"), root_schema, deep + 1)
    ]
    if (default := field.get("default")) not in (None, "", [], {}):
        default_text = default if isinstance(default, str) else json.dumps(default)
        described.append(f"default {default_text[:80]}")
    return list(dict.fromkeys(described))


def _tool_schema_bound_facts(least: object, most: object, unit: str) -> list[str]:
    # Do not document that a text or a list must not be empty.
    low = least if _is_tool_schema_bound(least) and not (unit and least in (0, 1)) else None
    high = most if _is_tool_schema_bound(most) else None
    if low is not None and high is not None:
        return [f"{_format_tool_schema_bound(low)} to {_format_tool_schema_bound(high)}{unit}"]
    if low is None and high is None:
        return []
    return [
        f"at least {_format_tool_schema_bound(low)}{unit}"
        if high is None
        else f"at most {_format_tool_schema_bound(high)}{unit}"
    ]


def _is_tool_schema_bound(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _format_tool_schema_bound(value: Any) -> str:
    return f"{value:,}"


NO_GRAMMAR = frozenset({"pattern"})
"""Keywords that servers refuse which make a grammar of a schema, such as llama.cpp's."""
CHECKED_ANYWAY = frozenset({"minLength", "minItems", *NO_GRAMMAR})
MOST_LENGTH = 500
"""Longest bound of a text that is offered: servers that make a grammar of it refuse larger ones."""


def brief_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a signature's schema without what costs tokens but hardly helps a model.

    That is titles, the null variant of optional arguments, patterns, and least lengths: a call
    that does not keep to one gets an error. Bounds stay, without which a small model fills a list
    or a short text up to its limit. `additionalProperties: false` stays only where it makes a
    schema strict.
    """
    definitions = schema.get("$defs", {})

    def shorten_part(part: dict[str, Any]) -> dict[str, Any]:
        if named := str(part.get("$ref", "")).removeprefix("#/$defs/"):
            siblings = {key: value for key, value in part.items() if key != "$ref"}
            part = {**_tool_schema_without_key(definitions[named], "description"), **siblings}
        variants = [each for each in part.get("anyOf", []) if each != {"type": "null"}]
        if len(variants) == 1 and "anyOf" in part:
            part = {**variants[0], **{k: v for k, v in part.items() if k != "anyOf"}}
            return shorten_part(part)
        if part.get("default", ...) in (None, "", []):
            part = {key: value for key, value in part.items() if key != "default"}
        unchecked = {k: v for k, v in part.items() if k not in CHECKED_ANYWAY}
        if unchecked.get("maxLength", 0) > MOST_LENGTH:
            del unchecked["maxLength"]
        if set(unchecked.get("properties", {})) - set(unchecked.get("required", [])):
            unchecked.pop("additionalProperties", None)
        return (
            unchecked
            if isinstance(unchecked.get("title"), dict)
            else _tool_schema_without_key(unchecked, "title")
        )

    return _map_schema(
        {key: value for key, value in schema.items() if key != "$defs"}, shorten_part
    )


def _tool_schema_without_key(part: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name != key}


def allows_strict(schema: dict[str, Any]) -> bool:
    """Return whether endpoints can enforce the schema strictly: it has no optional or additional
    fields and only supported keywords."""
    parts: list[dict[str, Any]] = []

    def note_part(part: dict[str, Any]) -> dict[str, Any]:
        parts.append(part)
        return part

    _map_schema(schema, note_part)
    return all(map(_is_strict, parts))


def _is_strict(schema: dict[str, Any]) -> bool:
    if not schema or not STRICT.issuperset(schema):
        return False
    if schema.get("type") != "object" and "properties" not in schema:
        return True
    fields = schema.get("properties", {})
    return schema.get("additionalProperties") is False and set(schema.get("required", ())) == {
        *fields
    }


def with_choices(tool: dict[str, Any], argument: str, choices: list[str]) -> dict[str, Any]:
    """Return the declaration of a tool with the entries that its list `argument` may have."""
    tool = deepcopy(tool)
    tool["function"]["parameters"]["properties"][argument]["items"]["enum"] = choices
    return tool


def without_keywords(schema: dict[str, Any], keywords: Collection[str]) -> dict[str, Any]:
    return _map_schema(schema, lambda part: {k: v for k, v in part.items() if k not in keywords})


def _add_schema_items(schema: dict[str, Any]) -> dict[str, Any]:
    kind = schema.get("type")
    lists = kind == "array" or (isinstance(kind, list) and "array" in kind)
    return {**schema, "items": {}} if lists and "items" not in schema else schema


def _map_schema(
    schema: dict[str, Any], change: Callable[[dict[str, Any]], dict[str, Any]]
) -> dict[str, Any]:
    def map_inner(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            if key in MANY:
                return {name: map_inner("", inner) for name, inner in value.items()}
            # These keywords have plain values, not schemas.
            return value if key in ("default", "const", "example") else _map_schema(value, change)
        if isinstance(value, list) and key not in ("enum", "default", "const", "examples"):
            return [map_inner("", entry) for entry in value]
        return value

    return {key: map_inner(key, value) for key, value in change(schema).items()}
