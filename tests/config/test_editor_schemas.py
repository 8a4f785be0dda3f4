"""JSON Schemas of the files that people write: shipped files are valid, mistakes are not."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from config.editor_schemas import FILES, Kind, editor_file_schema
from config.layers import SHIPPED

EXAMPLES = SHIPPED.parent / "examples" / "projects"
SHIPPING: dict[Kind, list[Path]] = {
    "agent": [*SHIPPED.glob("agents/*/agent.yaml"), SHIPPED / "defaults.yaml"],
    "guards": [*SHIPPED.glob("guards/*.yaml"), *SHIPPED.glob("agents/*/guards/*.yaml")],
    "phrases": [*SHIPPED.glob("phrases/*.yaml")],
    "graph": [SHIPPED / "graph" / "schema.yaml"],
    "project": [*EXAMPLES.glob("*.yaml")],
}


def wrong(kind: Kind, text: str) -> list[str]:
    """Return the dotted places at which a file violates the schema."""
    errors = Draft202012Validator(editor_file_schema(kind)).iter_errors(yaml.safe_load(text))
    return [".".join(map(str, error.absolute_path)) or "the whole" for error in errors]


@pytest.mark.parametrize("kind", FILES)
def test_what_ships_fits(kind: Kind) -> None:
    Draft202012Validator.check_schema(editor_file_schema(kind))
    assert SHIPPING[kind]
    for path in SHIPPING[kind]:
        assert wrong(kind, path.read_text(encoding="utf-8")) == [], path


@pytest.mark.parametrize(
    ("kind", "text", "where"),
    [
        ("agent", "limits: {min_todo: 3}", "limits"),
        ("agent", "limits: {min_todos: many}", "limits.min_todos"),
        ("agent", "model: {temperature: 3}", "model.temperature"),
        ("agent", "phase_models: {other: {}}", "phase_models"),
        ("agent", "fallbacks: [{name: a, windo: 1}]", "fallbacks.0"),
        ("agent", "hooks: {Stop: [{name: a}]}", "hooks.Stop.0"),
        ("agent", "verifiers: [{name: lint}]", "verifiers.0"),
        ("agent", "extends: [creator]", "extends"),
        ("agent", "mcp: {web: {away: wait}}", "mcp.web.away"),
        ("guards", "- {name: a, point: before_tool}", "0"),
        ("guards", "- {name: a, point: after, decision: deny}", "0.point"),
        ("phrases", "version: 1", "the whole"),
        ("graph", "nodes: {A: {properties: {}}}", "nodes.A"),
        ("project", "form: pair", "form"),
        ("project", "form: pipeline\nstages: [{task: a}]", "stages.0"),
    ],
)
def test_a_mistake_does_not_fit(kind: Kind, text: str, where: str) -> None:
    assert where in wrong(kind, text)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "extends: creator",
        "model: {window: 128000}",
        "limits: {job: {cost: 2}}",
        "fallbacks: [{name: other}]",
        "judge: {model: {}}",
        "review: {attempts: 3}",
        "prices: {m: {cached: 1}}",
        "graph: {nodes: {Requirement: {properties: {owner: {required: true}}}}}",
    ],
)
def test_what_the_file_below_has_need_not_be_repeated(text: str) -> None:
    assert wrong("agent", text) == []


def test_no_default_is_told_that_a_file_below_may_change() -> None:
    schema = editor_file_schema("agent")
    assert "default" not in schema["$defs"]["Budget"]["properties"]["model_calls"]
    assert schema["$defs"]["Hook"]["properties"]["timeout"]["default"] == 10


@pytest.mark.parametrize("kind", ["agent", "guards", "graph"])
def test_every_key_is_described(kind: Kind) -> None:
    schema = editor_file_schema(kind)
    parts: list[dict[str, Any]] = [schema, *schema["$defs"].values()]
    for part in parts:
        for name, key in part.get("properties", {}).items():
            assert key.get("description") or "$ref" in key, name
