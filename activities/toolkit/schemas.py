"""JSON Schemas of servers as endpoints take them: one they refuse fails every request with it."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from typing import Any

from protocol.text import first_few

MANY = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
"""Keywords under which schemas have names of somebody's choice."""
CHOICES = ("allOf", "anyOf", "oneOf")
BOUNDS = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " entries"),
)
BEYOND = {"exclusiveMinimum": "above", "exclusiveMaximum": "below"}
MOST_VALUES = 50
MOST_DEEP = 5
NOT_AT_THE_TOP = {*CHOICES, "enum", "not"}
STRICT = frozenset(
    {
        *("type", "properties", "required", "additionalProperties", "items", "enum", "const"),
        *("description", "title", "anyOf", "$ref", "$defs", "pattern", "multipleOf"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
    }
)
"""Keywords that OpenAI's endpoints take in a schema that a model keeps to strictly:
https://developers.openai.com/api/docs/guides/structured-outputs#supported-schemas"""


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


def facts(field: Any, whole: dict[str, Any], deep: int = 0) -> list[str]:
    """What of an argument a page tells beside its description: its values, bounds and default.

    Args:
        field: The argument's schema.
        whole: The schema it stands in, whose `$defs` it may refer to.
        deep: How many schemas this one is in.
    """
    if not isinstance(field, dict) or deep > MOST_DEEP:
        return []
    found = []
    if isinstance(values := field.get("enum"), list):
        found.append(f"one of {first_few([str(each)[:80] for each in values], MOST_VALUES)}")
    for least, most, unit in BOUNDS:
        found += _between(field.get(least), field.get(most), unit)
    found += [
        f"{word} {_number(field[key])}"
        for key, word in BEYOND.items()
        if _is_figure(field.get(key))
    ]
    parts = [one for key in CHOICES if isinstance(field.get(key), list) for one in field[key]]
    if str(named := field.get("$ref")).startswith("#/$defs/"):
        parts.append((whole.get("$defs") or {}).get(str(named).removeprefix("#/$defs/")))
    found += [fact for part in parts for fact in facts(part, whole, deep + 1)]
    found += [f"each {fact}" for fact in facts(field.get("items"), whole, deep + 1)]
    if (default := field.get("default")) not in (None, "", [], {}):
        told = default if isinstance(default, str) else json.dumps(default)
        found.append(f"default {told[:80]}")
    return list(dict.fromkeys(found))


def _between(least: object, most: object, unit: str) -> list[str]:
    # That a text or a list is not empty goes without saying.
    low = least if _is_figure(least) and not (unit and least in (0, 1)) else None
    high = most if _is_figure(most) else None
    if low is not None and high is not None:
        return [f"{_number(low)} to {_number(high)}{unit}"]
    if low is None and high is None:
        return []
    return [f"at least {_number(low)}{unit}" if high is None else f"at most {_number(high)}{unit}"]


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> str:
    return f"{value:,}"


CHECKED_ANYWAY = frozenset({"minLength", "maxLength", "minItems", "maxItems"})


def brief(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of a signature without what costs tokens and tells a model next to nothing.

    That is titles, the variant null of an argument that can be left out, and the lengths that texts
    and lists may have: a call that exceeds one is answered with it. That no other fields are taken
    is said where it lets an endpoint hold the model to the schema.
    """
    definitions = schema.get("$defs", {})

    def change(one: dict[str, Any]) -> dict[str, Any]:
        if named := str(one.get("$ref", "")).removeprefix("#/$defs/"):
            told = {key: value for key, value in one.items() if key != "$ref"}
            one = {**_without(definitions[named], "description"), **told}
        variants = [each for each in one.get("anyOf", []) if each != {"type": "null"}]
        if len(variants) == 1 and "anyOf" in one:
            one = {**variants[0], **{k: v for k, v in one.items() if k != "anyOf"}}
            return change(one)
        if one.get("default", ...) in (None, "", []):
            one = {key: value for key, value in one.items() if key != "default"}
        said = {k: v for k, v in one.items() if k not in CHECKED_ANYWAY}
        if set(said.get("properties", {})) - set(said.get("required", [])):
            said.pop("additionalProperties", None)
        return said if isinstance(said.get("title"), dict) else _without(said, "title")

    return _each({key: value for key, value in schema.items() if key != "$defs"}, change)


def _without(one: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in one.items() if name != key}


def allows_strict(schema: dict[str, Any]) -> bool:
    """Whether endpoints can hold a model to the schema: it has no field that may be left out, none
    beside those named, and no keyword that they do not know."""
    parts: list[dict[str, Any]] = []

    def note(part: dict[str, Any]) -> dict[str, Any]:
        parts.append(part)
        return part

    _each(schema, note)
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
