"""JSON Schemas for editors of the files that people write.

They check less than `starter.py config check`, which also reads the files that a file refers to.
"""

from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from config.schema.agent import AgentFile
from config.schema.config_data import field_texts
from config.schema.graph import GraphSchema
from config.schema.guards import Guard
from config.schema.reply_phrases import WordingFile
from protocol.project_start import ProjectStart

Kind = Literal["agent", "guards", "phrases", "graph", "project"]
FILES: dict[Kind, str] = {
    "agent": "config/agents/<name>/agent.yaml",
    "guards": "config/guards/<name>.yaml",
    "phrases": "config/phrases/<language>.yaml",
    "graph": "config/graph/schema.yaml",
    "project": "a project's file, as `starter.py project` takes it",
}
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_KINDS: dict[Kind, Any] = {
    "agent": AgentFile,
    "guards": list[Guard],
    "phrases": WordingFile,
    "graph": GraphSchema,
    "project": ProjectStart,
}
EXTENDS = {
    "type": "string",
    "description": "The agent whose file this one is merged over, instead of the defaults.",
}


class _UntitledSchema(GenerateJsonSchema):
    """Omits titles: Pydantic derives them from names, and the keys have descriptions."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def editor_file_schema(kind: Kind) -> dict[str, Any]:
    """The JSON Schema (2020-12) of one kind of file."""
    generated = TypeAdapter(_KINDS[kind]).json_schema(schema_generator=_UntitledSchema)
    if kind == "agent":
        generated["properties"] = {"extends": EXTENDS, **generated["properties"]}
        _relax_editor_schema(generated, generated["$defs"], set())
    if kind == "project":
        for name, words in field_texts(ProjectStart).items():
            generated["properties"][name]["description"] = words
    return {
        "$schema": DIALECT,
        "title": FILES[kind],
        **{k: generated[k] for k in generated if k != "title"},
    }


def _relax_editor_schema(part: Any, defs: dict[str, Any], visited: set[str]) -> None:
    """Remove required keys and defaults, which apply only to a merged file.

    Mappings are merged key by key, so the extended file may have the missing keys. Lists replace
    each other, so their entries are left unchanged.
    """
    if name := part.get("$ref", "").removeprefix("#/$defs/"):
        if name not in visited:
            visited.add(name)
            _relax_editor_schema(defs[name], defs, visited)
        # A default can stand next to a reference.
        part.pop("default", None)
        return
    part.pop("required", None)
    part.pop("default", None)
    for inner in [*part.get("properties", {}).values(), *part.get("anyOf", [])]:
        _relax_editor_schema(inner, defs, visited)
    named = [part.get("additionalProperties"), *part.get("patternProperties", {}).values()]
    for inner in named:
        if isinstance(inner, dict):
            _relax_editor_schema(inner, defs, visited)
