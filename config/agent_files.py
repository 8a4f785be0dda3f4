"""Reads an agent's configuration from YAML and Markdown.

An agent file is merged over the one it `extends` (another agent's name; without the key, the
defaults). Mappings merge key by key; lists and plain values replace the earlier ones. The agent's
own instructions replace those of the extended agent. Every error is a `ConfigError` that names the
file and the key.

The shipped configuration is the base, with the folders of LONGHAUL_CONFIG above it
(`config.layers`). A file replaces a weaker one of the same name, but `defaults.yaml` and the
graph's schema are merged, and an agent that extends its own name is merged over the weaker agent.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config.graph_files import extend_graph_schema, load_layered_graph_schema
from config.guard_files import load_guards, locate_guards
from config.layers import DEFAULTS, SHIPPED, Layers, configuration_layers
from config.schema.agent import AgentConfig, AgentFile, ConfigError
from config.schema.guards import Guard
from config.schema.reply_phrases import WordingFile, merge_reply_wordings
from config.templates import read_instructions_template, read_prompt_template
from config.yaml_files import explain_yaml_error, read_yaml_mapping, read_yaml_model
from protocol.validation_errors import short_error_value, validation_error_key

ENVIRONMENT = {
    "LONGHAUL_MODEL": "model.name",
    "LONGHAUL_MAX_MODEL_CALLS": "limits.phase.model_calls",
}
"""Keys that the worker's environment variables override."""


@dataclass(frozen=True)
class _MergedAgentFile:
    """An agent's file merged over all files that it extends."""

    content: dict[str, Any]
    files: list[tuple[Path, dict[str, Any]]]
    """The files with their own content, the agent's own first, the defaults last."""
    agents: list[str]
    """The agent and the agents that it extends, the nearest first."""

    def find_file_with_key(self, place: tuple[str | int, ...]) -> Path:
        """The file that sets a key; the agent's own file if none does."""
        return next(
            (path for path, content in self.files if _has_agent_key(content, place)),
            self.files[0][0],
        )


def agent_names(folder: Path = SHIPPED) -> list[str]:
    """Sorted names of the agents that can be started."""
    return _layer_agents(configuration_layers(folder))


def _layer_agents(layers: Layers) -> list[str]:
    return sorted(path.parent.name for path in layers.list_files("agents/*/agent.yaml"))


def agent_file(name: str, folder: Path = SHIPPED) -> Path:
    """The file that an agent is read from."""
    return configuration_layers(folder).find_file(_agent_path(name))


def _agent_path(name: str) -> str:
    return f"agents/{name}/agent.yaml"


def extended_agents(name: str, folder: Path) -> list[str]:
    """The agents that an agent extends, the nearest first; empty if it extends only the defaults.

    Raises:
        ConfigError: unknown agent, unreadable file, or a cycle.
    """
    merged = _merge_agent(name, configuration_layers(folder), [])
    return [each for each in dict.fromkeys(merged.agents) if each != name]


def load_agent(
    name: str,
    overrides: dict[str, object] | None = None,
    folder: Path = SHIPPED,
    *,
    reviews: bool = False,
) -> AgentConfig:
    """The agent's configuration with everything resolved.

    Args:
        name: Name of the agent.
        overrides: Values by dotted key, from `--set`; merged last.
        folder: The base folder, with `defaults.yaml`, `agents/` and `prompts/`.
        reviews: Whether it reviews another agent's work; its own work is then not reviewed.

    Raises:
        ConfigError: unknown agent, broken YAML, wrong key or value, missing or outdated template.
    """
    layers = configuration_layers(folder)
    merged = _merge_agent(name, layers, [])
    source = merged.files[0][0]
    settings = {key: ("set", value) for key, value in (overrides or {}).items()}
    for variable, key in ENVIRONMENT.items():
        if text := os.environ.get(variable):
            settings[key] = (
                variable,
                _parse_agent_override(text) if key.startswith("limits.") else text,
            )
    checked = _validate_agent_file(merged, settings)
    if reviews:
        _check_reviewer_agent(name, checked, source)
    if checked.review and checked.review.agent not in agent_names(folder):
        raise ConfigError(
            f"{source}: review.agent: "
            f"{_unknown_agent_message(checked.review.agent, agent_names(folder))}"
        )
    roles = checked.prompt_files
    return AgentConfig(
        **checked.model_dump(),
        name=name,
        rules=_load_agent_guards(checked.guards, _agent_guard_folders(merged, layers), source),
        templates={
            role: read_prompt_template(layers.find_file(f"prompts/{file}"), role)
            for role, file in roles.items()
        },
        instructions_template=read_instructions_template(
            [
                layers.find_file(f"agents/{agent}/instructions.md")
                for agent in dict.fromkeys(merged.agents)
            ]
        ),
        wording=merge_reply_wordings(
            [read_yaml_model(path, WordingFile) for path in layers.list_files("phrases/*.yaml")]
        ),
        graph_schema=extend_graph_schema(load_layered_graph_schema(layers), checked.graph, source),
        reviewer=_load_reviewer_agent(checked, folder),
    )


def _reviewer_name(agent: AgentFile) -> str:
    return agent.review.agent if agent.review else ""


def _check_reviewer_agent(name: str, agent: AgentFile, source: Path) -> None:
    """Raise ConfigError if an agent that reviews others has a reviewer, servers or skills."""
    if agent.review:
        raise ConfigError(
            f"{source}: review: {name} reviews other agents and has no reviewer itself"
        )
    for key in ("mcp", "skills"):
        if getattr(agent, key):
            what = "servers" if key == "mcp" else key
            raise ConfigError(
                f"{source}: {key}: {name} reviews other agents, and a reviewer has no {what}"
            )


def _load_reviewer_agent(agent: AgentFile, folder: Path) -> AgentConfig | None:
    name = _reviewer_name(agent)
    return load_agent(name, folder=folder, reviews=True) if name else None


def _agent_guard_folders(merged: _MergedAgentFile, layers: Layers) -> list[Path]:
    """The folders to search for an agent's guards, the nearest first."""
    places = [*(f"agents/{agent}/guards" for agent in dict.fromkeys(merged.agents)), "guards"]
    return [layer / place for place in places for layer in layers.folders]


def agent_guard_files(name: str, folder: Path = SHIPPED) -> dict[str, Path]:
    """The file of each guard in an agent's configuration, by name. Raises ConfigError."""
    layers = configuration_layers(folder)
    merged = _merge_agent(name, layers, [])
    located = locate_guards(
        _validate_agent_file(merged, {}).guards, _agent_guard_folders(merged, layers)
    )
    return {guard.name: path for path, guard in located}


def _load_agent_guards(names: list[str], folders: list[Path], source: Path) -> list[Guard]:
    try:
        return load_guards(names, folders)
    except ConfigError as problem:
        # A wrong name in `guards` is an error of the agent's file; others name their guard file.
        where = f"{source}: " if str(problem).startswith("guards: ") else ""
        raise ConfigError(f"{where}{problem}") from None


def _parse_agent_override(text: str) -> int | str:
    """Parse an integer; return other text unchanged, for the schema to refuse."""
    return int(text) if text.isdecimal() and len(text) < 20 else text


def amend_agent_config(
    config: AgentConfig, overrides: dict[str, object], folder: Path = SHIPPED
) -> AgentConfig:
    """A pinned configuration with some keys overridden; the others stay as pinned.

    Raises:
        ConfigError: wrong key or value, missing or outdated template, or guards that differ from
            the pinned ones.
    """
    settings = {key: ("set", value) for key, value in overrides.items()}
    pinned = config.model_dump(include=set(AgentFile.model_fields))
    checked = _validate_agent_file(
        _MergedAgentFile(pinned, [(Path(config.name), {})], [config.name]), settings
    )
    if checked.guards != config.guards:
        # Learned guards among the pinned ones replace some of the configured ones.
        raise ConfigError(
            f"set: guards: found {short_error_value(checked.guards)}, expected "
            f"{short_error_value(config.guards)}: a fork "
            "keeps the guards of the job it goes on from; start a new job to have others"
        )
    before, roles = config.prompt_files, checked.prompt_files
    templates = {
        role: read_prompt_template(configuration_layers(folder).find_file(f"prompts/{file}"), role)
        for role, file in roles.items()
        if file != before.get(role)
    }
    follows: dict[str, Any] = {"templates": config.templates | templates}
    if checked.graph != config.graph:
        base = load_layered_graph_schema(configuration_layers(folder))
        follows["graph_schema"] = extend_graph_schema(base, checked.graph, Path(config.name))
    if _reviewer_name(checked) != _reviewer_name(config):
        follows["reviewer"] = _load_reviewer_agent(checked, folder)
    # The copy shares nothing with the original, which its job continues to use.
    return config.model_copy(
        update={name: getattr(checked, name) for name in AgentFile.model_fields} | follows,
        deep=True,
    )


def overridden_agent_value(overrides: dict[str, object], key: str) -> object:
    """The overriding value of a dotted key, in nested or dotted form; None without one."""
    content: Any = {}
    for name, value in overrides.items():
        _set_agent_key(content, name, value)
    for part in key.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content


def _validate_agent_file(
    merged: _MergedAgentFile, settings: dict[str, tuple[str, object]]
) -> AgentFile:
    """Validate the merged file with outside `settings`: (origin, value) by dotted key."""
    for key, (_, value) in settings.items():
        _set_agent_key(merged.content, key, value)
    renamed = settings.get("model.name", ("", None))[0] == "LONGHAUL_MODEL"
    _complete_agent_models(merged.content, renamed)
    try:
        return AgentFile.model_validate(merged.content)
    except ValidationError as error:
        location = error.errors()[0]["loc"]
        wrong = validation_error_key(location)
        # Errors in outside settings name their origin instead of the file.
        origins: list[object] = [
            name
            for key, (name, _) in settings.items()
            if _is_parent_agent_key(key, wrong) or _is_parent_agent_key(wrong, key)
        ]
        where = origins[0] if origins else merged.find_file_with_key(location)
        raise ConfigError(f"{where}: {explain_yaml_error(error, AgentFile)}") from None


def _has_agent_key(content: Any, place: tuple[str | int, ...]) -> bool:
    try:
        for key in place:
            content = content[key]
    except (KeyError, IndexError, TypeError):
        return False
    return True


def _is_parent_agent_key(key: str, other: str) -> bool:
    return f"{other}.".startswith(f"{key}.")


def _merge_agent(name: str, layers: Layers, extending: list[str]) -> _MergedAgentFile:
    if name not in (known := _layer_agents(layers)):
        raise ConfigError(
            f"agent {short_error_value(name)} is not known; the agents are {', '.join(known)}"
        )
    path = layers.find_file(_agent_path(name))
    if not re.fullmatch(r"[a-z][a-z0-9_-]{0,63}", name):
        raise ConfigError(
            f"{path.parent}: cannot be the name of an agent; expected small letters, digits, _ "
            "and - (at most 64, beginning with a letter): rename the folder"
        )
    if name in extending:
        raise ConfigError(f"{path}: extends: circle {' -> '.join([*extending, name])}")
    agent_content = read_yaml_mapping(path)
    parent = agent_content.pop("extends", None)
    if parent is None:
        above = _merge_defaults(layers)
    elif parent == name and name in _layer_agents(weaker := layers.below(path)):
        # An agent that extends its own name extends the weaker one.
        above = _merge_agent(name, weaker, extending)
    elif parent in known:
        above = _merge_agent(parent, layers, [*extending, name])
    else:
        raise ConfigError(f"{path}: extends: {_unknown_agent_message(parent, known)}")
    content = _merge_mappings(above.content, agent_content)
    return _MergedAgentFile(content, [(path, agent_content), *above.files], [name, *above.agents])


def _merge_defaults(layers: Layers) -> _MergedAgentFile:
    shipped = layers.folders[-1] / DEFAULTS
    additions = [path for path in layers.list_all(DEFAULTS) if path != shipped]
    files = [(path, read_yaml_mapping(path)) for path in (*additions, shipped)]
    content: dict[str, Any] = {}
    for _, more in reversed(files):
        content = _merge_mappings(content, more)
    return _MergedAgentFile(content, files, [])


def _unknown_agent_message(value: object, known: list[str]) -> str:
    return (
        f"expected the name of an agent, found {short_error_value(value)}; the agents are "
        f"{', '.join(known)}"
    )


def _merge_mappings(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        present = result.get(key)
        both = isinstance(present, dict) and isinstance(value, dict)
        result[key] = _merge_mappings(present, value) if both else value  # type: ignore[arg-type]
    return result


def _complete_agent_models(merged: dict[str, Any], renamed: bool) -> None:
    """Copy to each other model the keys of `model` that it does not set itself.

    Args:
        merged: The agent's file; malformed parts are left for validation.
        renamed: Whether the environment names the model; that name then applies to all models.
    """
    base = merged.get("model")

    def complete_model(other: object) -> object:
        if not isinstance(other, dict) or not isinstance(base, dict):
            return other
        return {**base, **{k: v for k, v in other.items() if not (renamed and k == "name")}}

    if isinstance(phases := merged.get("phase_models"), dict):
        merged["phase_models"] = {kind: complete_model(other) for kind, other in phases.items()}
    if isinstance(fallbacks := merged.get("fallbacks"), list):
        merged["fallbacks"] = [complete_model(other) for other in fallbacks]
    if isinstance(judge := merged.get("judge"), dict):
        merged["judge"] = {**judge, "model": complete_model(judge.get("model") or {})}


def _set_agent_key(merged: dict[str, Any], dotted: str, value: object) -> None:
    *parents, last = dotted.split(".")
    section = merged
    for key in parents:
        inner = section.get(key)
        # A copy, since other agents share the mapping.
        section[key] = dict(inner) if isinstance(inner, dict) else {}
        section = section[key]
    # As in files, a mapping is merged key by key.
    section[last] = _merge_mappings(section, {last: value})[last]
