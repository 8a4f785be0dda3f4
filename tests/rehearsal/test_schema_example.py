"""The rehearsal model's values for a schema fit it."""

from typing import Any

import jsonschema
import pytest

from rehearsal.schema_example import example_value

TEA = {
    "type": "object",
    "required": ["grams", "kind"],
    "properties": {
        "grams": {"type": "integer", "exclusiveMinimum": 3, "multipleOf": 2},
        "kind": {"enum": ["green", "black"]},
        "note": {"type": "string"},
    },
}
DATED = {
    "allOf": [
        {"type": "object", "required": ["hot"], "properties": {"hot": {"type": "boolean"}}},
        {"required": ["on"], "properties": {"on": {"type": "string", "format": "date"}}},
    ]
}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (TEA, {"grams": 4, "kind": "green"}),
        (
            {
                "$defs": {"tea": TEA},
                "type": "array",
                "minItems": 2,
                "items": {"$ref": "#/$defs/tea"},
            },
            [{"grams": 4, "kind": "green"}] * 2,
        ),
        (DATED, {"hot": False, "on": "2026-01-01"}),
        ({"anyOf": [{"type": "string", "minLength": 12}, {"type": "null"}]}, "rehearsal..."),
        ({"type": ["null", "string"]}, None),
        ({"type": "number", "maximum": -2}, -2),
        ({"type": "array", "prefixItems": [{"const": "x"}]}, ["x"]),
        ({}, "rehearsal"),
    ],
)
def test_value_fits_its_schema(schema: dict[str, Any], value: Any) -> None:
    assert example_value(schema) == value
    jsonschema.validate(value, schema)


def test_schema_that_contains_itself_ends() -> None:
    schema = {"type": "object", "required": ["next"], "properties": {"next": {"$ref": "#"}}}
    assert example_value(schema)["next"]["next"]
