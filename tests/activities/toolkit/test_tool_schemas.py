"""What is sent of the schemas that servers declare."""

from typing import Any

import pytest

from activities.toolkit.arguments import InvalidArguments, SchemaArguments
from activities.toolkit.tool_schemas import schema_argument_facts

ID = {"type": "integer"}
LIST = {"type": ["array", "null"], "default": {"type": "array"}}


def test_alternatives_at_the_top_are_not_sent_and_hold_all_the_same() -> None:
    branch = {"properties": {"name": {"type": "string"}}, "required": ["name"]}
    declared = {"type": "object", "properties": {"id": ID}, "anyOf": [{"required": ["id"]}, branch]}
    takes = SchemaArguments(declared)
    assert takes.schema == {"type": "object", "properties": {"id": ID, "name": {"type": "string"}}}
    assert [one.name for one in takes.listed] == ["id", "name"]
    with pytest.raises(InvalidArguments):
        takes.check({})
    assert takes.check({"name": "tea"}) == {"name": "tea"}


def test_every_list_has_items() -> None:
    declared = {"type": "object", "properties": {"items": {"type": "array"}, "anyOf": LIST}}
    assert SchemaArguments(declared).schema["properties"] == {
        "items": {"type": "array", "items": {}},
        "anyOf": {**LIST, "items": {}},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": True, "b": {"enum": [{"type": "array"}]}}},
        {"type": "object", "properties": {"a": {"anyOf": [ID, {"not": ID}]}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": ID}},
    ],
)
def test_others_are_sent_as_they_are(schema: dict[str, Any]) -> None:
    assert SchemaArguments(schema).schema == schema


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ({"enum": ["legal", "data"]}, ["one of legal, data"]),
        ({"type": "integer", "minimum": 1, "default": 1}, ["at least 1", "default 1"]),
        ({"minimum": 0, "maximum": 1, "description": "How sure."}, ["0 to 1"]),
        ({"exclusiveMinimum": 0, "maximum": 5000}, ["at most 5,000", "above 0"]),
        ({"minLength": 1, "maxLength": 4000}, ["at most 4,000 characters"]),
        ({"anyOf": [{"minItems": 2}, {"type": "null"}], "default": None}, ["at least 2 entries"]),
        (
            {"items": {"properties": {"id": {}, "why": {}}, "required": ["id"]}},
            ["each with id, why?"],
        ),
        (
            {"items": {"$ref": "#/$defs/kind"}, "default": False},
            ["each one of a, b", "default false"],
        ),
        ({"$ref": "#/$defs/loop"}, []),
        ({"enum": list(range(60))}, [f"one of {', '.join(map(str, range(50)))} and 10 more"]),
        # A server may declare anything.
        ({"enum": "x", "minimum": "0", "maxLength": True, "anyOf": {}, "items": []}, []),
        (True, []),
    ],
)
def test_a_page_tells_values_bounds_and_default(field: Any, expected: list[str]) -> None:
    whole = {"$defs": {"kind": {"enum": ["a", "b"]}, "loop": {"anyOf": [{"$ref": "#/$defs/loop"}]}}}
    assert schema_argument_facts(field, whole) == expected
