"""JSON Schemas for editors of the files that people write.

They check less than `starter.py config check`, which also reads the files that a file refers to.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from config.schema.agent import AgentFile
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
OF_PROJECTS = {
    "form": "`features`, `groups` or `pipeline`.",
    "title": "A name for people; else the first line of the instructions.",
    "instructions": "What is to be made. Every agent is given them.",
    "documents": "As of a job, in a file paths as seen from it; for the agents that plan and "
    "those that work in groups or stages.",
    "items": "`groups`: the scope; else the list under `Scope` in the instructions.",
    "stages": "`pipeline`: agents in order, with `agent`, `task` and what else a stage may have.",
    "agents": "Other agents for the roles initializer, coder, tester, manager, worker.",
    "product": "Folder of each workspace that holds the project's files; `repo` if left out.",
    "repository": "What it [begins from](repositories.md), `{url, ref, depth}` or `{folder}`; an "
    "empty repository if left out.",
    "publish": "Where its branch is pushed in the end: `{remote, branch}`.",
    "parallel": "Groups that work at the same time; 4 if left out.",
    "attempts": "Jobs on one feature, group or stage before it is blocked; 2 if left out.",
    "tests": "`features`: the command that [proves](#proof) each check (`unit`, `api`, `db`); the "
    "initializer names those that are not here.",
    "needs": "Commands that have to work in the sandbox before anything is begun, such as `python3 "
    "-m pytest --version`.",
    "proof": "For checks that no command can make (`browser`), the tools a result of which proves "
    "that they were made.",
    "success": "`groups`: what must hold of the project's files before it may end.",
    "deadline": "Seconds that each job may take.",
    "limits": "What all jobs together may use: model_calls, tool_calls, tokens, cost, seconds.",
    "set": "Configuration for every job of the project.",
    "notify": "Who is called, for the project and its jobs, as an agent's "
    "[`notify`](operations.md#being-called); that of its agents if left out.",
    "history_events": "Events after which the project continues as new; 1000 if left out.",
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
    "description": "The agent over whose file this one is merged, in place of the defaults.",
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
        _loosen_required(generated, generated["$defs"], set())
    if kind == "project":
        for name, words in OF_PROJECTS.items():
            generated["properties"][name]["description"] = words
    return {
        "$schema": DIALECT,
        "title": FILES[kind],
        **{k: generated[k] for k in generated if k != "title"},
    }


def _loosen_required(part: Any, defs: dict[str, Any], visited: set[str]) -> None:
    """Remove required keys and defaults, which apply only to a merged file.

    Mappings are merged key by key, so the extended file may have the missing keys. Lists replace
    each other, so their entries are left unchanged.
    """
    if name := part.get("$ref", "").removeprefix("#/$defs/"):
        if name not in visited:
            visited.add(name)
            _loosen_required(defs[name], defs, visited)
        # A default can stand next to a reference.
        part.pop("default", None)
        return
    part.pop("required", None)
    part.pop("default", None)
    for inner in [*part.get("properties", {}).values(), *part.get("anyOf", [])]:
        _loosen_required(inner, defs, visited)
    named = [part.get("additionalProperties"), *part.get("patternProperties", {}).values()]
    for inner in named:
        if isinstance(inner, dict):
            _loosen_required(inner, defs, visited)
