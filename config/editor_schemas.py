"""JSON Schemas for editors of the files that people write.

They check less than `starter.py config check`, which also reads the files that a file refers to.
"""

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
    "title": "A name for people; the first line of the instructions if left out.",
    "instructions": "What to build. Every agent gets them.",
    "documents": "As for a job, but paths in a file are relative to it; for the agents that "
    "plan, and those that work in groups or stages.",
    "items": "`groups`: the scope; if left out, the list under `Scope` in the instructions.",
    "stages": "`pipeline`: stages in order, each with `agent`, `task` and a stage's other keys.",
    "agents": "Agents to use for the roles initializer, coder, tester, manager, worker.",
    "product": "Folder with the project's files in each workspace; `repo` if left out.",
    "repository": "The repository or folder it [begins from](repositories.md), `{url, ref, "
    "depth}` or `{folder}`; an empty repository if left out.",
    "publish": "The branch to which its work is pushed at the end: `{remote, branch}`.",
    "parallel": "Groups that work at the same time; 4 if left out.",
    "attempts": "Jobs on one feature, group or stage before it is blocked; 2 if left out.",
    "tests": "`features`: the command that [proves](#proof) each check (`unit`, `api`, "
    "`db`); the initializer names commands that are missing here.",
    "needs": "Commands that must succeed in the sandbox before the project begins, such "
    "as `python3 -m pytest --version`.",
    "proof": "For checks without a command (`browser`): tools whose results prove that "
    "the check was made.",
    "success": "`groups`: conditions on the project's files that must hold before it may end.",
    "deadline": "Time limit of each job, in seconds.",
    "limits": "Limits for all jobs together: model_calls, tool_calls, tokens, cost, seconds.",
    "set": "Configuration for every job of the project.",
    "notify": "Where messages about the project and its jobs are sent, like an agent's "
    "[`notify`](people.md#notifications); that of its agents if left out.",
    "history_events": "Events after which the project continues as new; 1000 if left out.",
    "team": "The [team](people.md#teams) whose quota its jobs count for, and whose spend they are.",
    "by": "Who starts it; `starter.py` fills it in.",
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
        for name, words in OF_PROJECTS.items():
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
