"""Reads an agent's configuration from YAML and Markdown.

An agent file is merged over the one it `extends` (another agent's name; without the key, the
defaults): mappings key by key, lists and plain values replaced whole. Every error is a
`Problem` that names the file and the key.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config.files import explain, read_mapping, short
from config.graph_files import extended, load_graph_schema
from config.guard_files import load_guards
from config.guard_schema import Guard
from config.schema import AgentConfig, AgentFile, Problem
from config.templates import read_instructions, read_prompt
from config.wording import Wording, WordingFile, together

SHIPPED = Path(__file__).parent
ENVIRONMENT = {
    "LONGHAUL_MODEL": "model.name",
    "LONGHAUL_MAX_MODEL_CALLS": "limits.phase.model_calls",
}
"""Keys that an environment variable of the worker overrides."""


def agent_names(folder: Path = SHIPPED) -> list[str]:
    """Names of the agents that can be started, sorted."""
    return sorted(path.parent.name for path in (folder / "agents").glob("*/agent.yaml"))


def load_agent(
    name: str,
    overrides: dict[str, object] | None = None,
    folder: Path = SHIPPED,
    *,
    reviews: bool = False,
) -> AgentConfig:
    """The agent's configuration with everything resolved.

    Args:
        name: The agent.
        overrides: Dotted keys to values, from `--set`; merged last.
        folder: Where `defaults.yaml`, `agents/` and `prompts/` are.
        reviews: Whether it is to review another agent's work; its own is then not reviewed.

    Raises:
        Problem: unknown agent, broken YAML, wrong key or value, missing or outdated template.
    """
    merged, source, chain = _merged(name, folder, [])
    given = {key: ("set", value) for key, value in (overrides or {}).items()}
    for variable, key in ENVIRONMENT.items():
        if found := os.environ.get(variable):
            given[key] = (variable, _number(found) if key.startswith("limits.") else found)
    checked = _validated(merged, given, source)
    if reviews and checked.review:
        raise Problem(f"{source}: review: {name} reviews other agents and has no reviewer itself")
    if reviews and checked.mcp:
        raise Problem(f"{source}: mcp: {name} reviews other agents, and a reviewer has no servers")
    roles = checked.prompt_files
    guards = [*(folder / "agents" / agent / "guards" for agent in chain), folder / "guards"]
    return AgentConfig(
        **checked.model_dump(),
        name=name,
        rules=_rules(checked.guards, guards, source),
        templates={role: read_prompt(folder / "prompts" / file) for role, file in roles.items()},
        instructions_template=read_instructions(folder / "agents" / name / "instructions.md"),
        wording=_wording(folder / "phrases"),
        graph_schema=extended(
            load_graph_schema(folder / "graph" / "schema.yaml"), checked.graph, source
        ),
        reviewer=load_agent(checked.review.agent, folder=folder, reviews=True)
        if checked.review
        else None,
    )


def _rules(names: list[str], folders: list[Path], source: Path) -> list[Guard]:
    try:
        return load_guards(names, folders)
    except Problem as problem:
        # A name that is no file's stands in the agent's own file; all else names its guard file.
        where = f"{source}: " if str(problem).startswith("guards: ") else ""
        raise Problem(f"{where}{problem}") from None


def _number(text: str) -> int | str:
    """A whole number as one; anything else as it is, for the schema to refuse."""
    return int(text) if text.isdecimal() and len(text) < 20 else text


def amend(config: AgentConfig, overrides: dict[str, object], folder: Path = SHIPPED) -> AgentConfig:
    """A pinned configuration with keys overridden; what was not overridden is as it was pinned.

    Raises:
        Problem: wrong key or value, missing or outdated template.
    """
    given = {key: ("set", value) for key, value in overrides.items()}
    merged = config.model_dump(include=set(AgentFile.model_fields))
    checked = _validated(merged, given, Path(config.name))
    before, roles = config.prompt_files, checked.prompt_files
    templates = {
        role: read_prompt(folder / "prompts" / file)
        for role, file in roles.items()
        if file != before.get(role)
    }
    follows: dict[str, Any] = {"templates": config.templates | templates}
    if checked.graph != config.graph:
        base = load_graph_schema(folder / "graph" / "schema.yaml")
        follows["graph_schema"] = extended(base, checked.graph, Path(config.name))
    return config.model_copy(
        update={name: getattr(checked, name) for name in AgentFile.model_fields} | follows
    )


def _validated(
    merged: dict[str, Any], given: dict[str, tuple[str, object]], source: Path
) -> AgentFile:
    """The agent's file with what was given from outside, as (origin, value) by dotted key."""
    for key, (_, value) in given.items():
        _set(merged, key, value)
    _complete_models(merged, renamed=given.get("model.name", ("", None))[0] == "LONGHAUL_MODEL")
    try:
        return AgentFile.model_validate(merged)
    except ValidationError as error:
        wrong = ".".join(map(str, error.errors()[0]["loc"]))
        # What was given from outside is not to be looked for in the file.
        origins = [
            name for key, (name, _) in given.items() if _above(key, wrong) or _above(wrong, key)
        ]
        raise Problem(f"{origins[0] if origins else source}: {explain(error)}") from None


def _above(key: str, other: str) -> bool:
    return f"{other}.".startswith(f"{key}.")


def _merged(name: str, folder: Path, seen: list[str]) -> tuple[dict[str, Any], Path, list[str]]:
    """The agent's file over all that it extends; the file; the agents, the nearest first."""
    path = folder / "agents" / name / "agent.yaml"
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", name) or not path.is_file():
        known = ", ".join(agent_names(folder))
        raise Problem(f"agent {short(name)} is not known; the agents are {known}")
    if name in seen:
        raise Problem(f"{path}: extends: circle {' -> '.join([*seen, name])}")
    own = read_mapping(path)
    parent = own.pop("extends", None)
    above: list[str] = []
    if parent is None:
        base = read_mapping(folder / "defaults.yaml")
    elif isinstance(parent, str):
        base, _, above = _merged(parent, folder, [*seen, name])
    else:
        raise Problem(f"{path}: extends: expected the name of an agent, found {short(parent)}")
    return _merge(base, own), path, [name, *above]


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        present = result.get(key)
        both = isinstance(present, dict) and isinstance(value, dict)
        result[key] = _merge(present, value) if both else value  # type: ignore[arg-type]
    return result


def _complete_models(merged: dict[str, Any], renamed: bool) -> None:
    """Give each other model the keys of `model` that it does not set itself.

    Args:
        merged: The agent's file; what is not of the expected form is left for validation.
        renamed: Whether the environment names the model: it then holds for every one.
    """
    base = merged.get("model")

    def complete(other: object) -> object:
        if not isinstance(other, dict) or not isinstance(base, dict):
            return other
        return {**base, **{k: v for k, v in other.items() if not (renamed and k == "name")}}

    if isinstance(phases := merged.get("phase_models"), dict):
        merged["phase_models"] = {kind: complete(other) for kind, other in phases.items()}
    if isinstance(fallbacks := merged.get("fallbacks"), list):
        merged["fallbacks"] = [complete(other) for other in fallbacks]
    if isinstance(judge := merged.get("judge"), dict):
        merged["judge"] = {**judge, "model": complete(judge.get("model") or {})}


def _set(merged: dict[str, Any], dotted: str, value: object) -> None:
    *parents, last = dotted.split(".")
    section = merged
    for key in parents:
        inner = section.get(key)
        # A copy, so that what another agent shares with us stays as it is.
        section[key] = dict(inner) if isinstance(inner, dict) else {}
        section = section[key]
    section[last] = value


def _wording(folder: Path) -> Wording:
    files = []
    for path in sorted(folder.glob("*.yaml")):
        try:
            files.append(WordingFile.model_validate(read_mapping(path)))
        except ValidationError as error:
            raise Problem(f"{path}: {explain(error)}") from None
    return together(files)
