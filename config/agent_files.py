"""Reads an agent's configuration from YAML and Markdown.

An agent's file is merged over those that it extends (`config.agent_inheritance`). The agent's own
instructions replace those of the extended agent. Every error is a `ConfigError` that names the file
and the key.

The shipped configuration is the base, with the folders of LONGHAUL_CONFIG above it
(`config.layers`). A file replaces a weaker one of the same name, but `defaults.yaml` and the
graph's schema are merged, and an agent that extends its own name is merged over the weaker agent.
"""

import os
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from config.agent_inheritance import (
    MergedAgentFile,
    agent_path,
    layer_agents,
    merge_agent,
    parse_agent_override,
    set_agent_key,
    unknown_agent_message,
)
from config.guard_files import locate_guards
from config.layers import SHIPPED, Layers, configuration_layers
from config.schema.agent import AgentConfig, AgentFile, ConfigError
from config.schema.graph import GraphSchema
from config.schema.guards import Guard
from config.schema.reply_phrases import WordingFile, merge_reply_wordings
from config.schema.start import StartRights
from config.start_settings import check_start_models, check_start_settings
from config.templates import read_instructions_template, read_prompt_template
from config.yaml_files import explain_yaml_error, read_yaml_model
from protocol.validation_errors import short_error_value, validation_error_key

ENVIRONMENT = {
    "LONGHAUL_MODEL": "model.name",
    "LONGHAUL_MAX_MODEL_CALLS": "limits.phase.model_calls",
    "LONGHAUL_MAX_JOB_MODEL_CALLS": "limits.job.model_calls",
    "LONGHAUL_MAX_SECONDS": "limits.job.seconds",
}
"""Keys that the worker's environment variables override."""


def agent_names(folder: Path = SHIPPED) -> list[str]:
    """Sorted names of the agents that can be started."""
    return layer_agents(configuration_layers(folder))


def agent_file(name: str, folder: Path = SHIPPED) -> Path:
    return configuration_layers(folder).find_file(agent_path(name))


def load_agent(
    name: str,
    overrides: dict[str, object] | None = None,
    folder: Path = SHIPPED,
    *,
    reviews: bool = False,
    reviewed: AgentFile | None = None,
) -> AgentConfig:
    """The agent's configuration with everything resolved.

    Args:
        overrides: Values by dotted key, from `--set`; merged last.
        folder: The base folder, with `defaults.yaml`, `agents/` and `prompts/`.
        reviews: Whether it reviews another agent's work; its own work is then not reviewed.
        reviewed: That agent, whose model it uses as far as its own files name none.

    Raises:
        ConfigError: unknown agent, broken YAML, wrong key or value, missing or outdated template.
    """
    layers = configuration_layers(folder)
    merged = merge_agent(name, layers, [])
    source = merged.files[0][0]
    configured: dict[str, tuple[str, object]] = {
        key: (variable, parse_agent_override(text) if key.startswith("limits.") else text)
        for variable, key in ENVIRONMENT.items()
        if (text := os.environ.get(variable))
    }
    settings = {key: ("set", value) for key, value in (overrides or {}).items()} | configured
    if reviews:
        _settle_reviewer_defaults(merged, reviewed)
    checked = _validate_agent_file(replace(merged, content=deepcopy(merged.content)), settings)
    if overrides:
        before = _validate_agent_file(merged, configured)
        check_start_settings(before, checked, before.start, partial(_all_agents, folder))
    if reviews:
        _check_reviewer_agent(name, checked, source)
    if checked.review and checked.review.agent not in agent_names(folder):
        raise ConfigError(
            f"{source}: review.agent: "
            f"{unknown_agent_message(checked.review.agent, agent_names(folder))}"
        )
    return AgentConfig(
        **checked.model_dump(),
        name=name,
        rules=_load_agent_guards(checked.guards, _agent_guard_folders(merged, layers), source),
        templates=_read_prompt_templates(checked.prompt_files, layers),
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


def _read_prompt_templates(files: dict[str, str], layers: Layers) -> dict[str, str]:
    """The templates of roles, each from the strongest folder that has its file."""
    return {
        role: read_prompt_template(layers.find_file(f"prompts/{file}"), role)
        for role, file in files.items()
    }


def _all_agents(folder: Path) -> list[AgentConfig]:
    """All agents of the configuration that can be read."""
    agents = []
    for name in agent_names(folder):
        with suppress(ConfigError):
            agents.append(load_agent(name, folder=folder))
    return agents


def digest_times() -> set[str]:
    """The times of `notify.digest` of all agents of the worker."""
    notified = [agent.notify for agent in _all_agents(SHIPPED) if agent.notify]
    return {notify.digest for notify in notified if notify.digest}


def agents_with_digest(digest: str) -> list[AgentConfig]:
    """The agents of the worker whose digest is due at this time."""
    agents = _all_agents(SHIPPED)
    return [each for each in agents if each.notify and each.notify.digest == digest]


def start_rights(config: AgentConfig) -> StartRights:
    """What the worker's present configuration leaves to starts of an agent that a job pinned."""
    with suppress(ConfigError):
        return load_agent(config.name).start
    return config.start


def check_changed_models(before: AgentConfig, after: AgentConfig) -> None:
    """Refuse models that are the work of several settings together. Raises ConfigError."""
    others = partial(_all_agents, SHIPPED)
    check_start_models(before, after, start_rights(before), others)
    if before.reviewer and after.reviewer:
        check_start_models(before.reviewer, after.reviewer, start_rights(before), others)


def _reviewer_name(agent: AgentFile) -> str:
    return agent.review.agent if agent.review else ""


def _settle_reviewer_defaults(merged: MergedAgentFile, reviewed: AgentFile | None) -> None:
    """Replace what a reviewer has from the defaults: it has no reviewer, and the job's model."""
    content = merged.own_content
    merged.content["review"] = content.get("review")
    if reviewed is None:
        return
    model = reviewed.phase_models.get("strategic", reviewed.model).model_dump()
    own_model = content.get("model") or {}
    merged.content["model"] = {**model, **own_model} if isinstance(own_model, dict) else own_model
    if not own_model:
        fallbacks = [each.model_dump() for each in reviewed.fallbacks]
        phase_models = content.get("phase_models") or {}
        merged.content.update({"phase_models": phase_models, "fallbacks": fallbacks})


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
    return load_agent(name, folder=folder, reviews=True, reviewed=agent) if name else None


def _agent_guard_folders(merged: MergedAgentFile, layers: Layers) -> list[Path]:
    """The folders to search for an agent's guards, the nearest first."""
    places = [*(f"agents/{agent}/guards" for agent in dict.fromkeys(merged.agents)), "guards"]
    return [layer / place for place in places for layer in layers.folders]


def agent_guard_files(name: str) -> dict[str, Path]:
    """The file of each guard in an agent's configuration, by name. Raises ConfigError."""
    layers = configuration_layers()
    merged = merge_agent(name, layers, [])
    located = locate_guards(
        _validate_agent_file(merged, {}).guards, _agent_guard_folders(merged, layers)
    )
    return {guard.name: path for path, guard in located}


def _load_agent_guards(names: list[str], folders: list[Path], source: Path) -> list[Guard]:
    try:
        return [guard for _, guard in locate_guards(names, folders)]
    except ConfigError as problem:
        # A wrong name in `guards` is an error of the agent's file; others name their guard file.
        where = f"{source}: " if str(problem).startswith("guards: ") else ""
        raise ConfigError(f"{where}{problem}") from None


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
        MergedAgentFile(pinned, [(Path(config.name), {})], [config.name]), settings
    )
    if overrides:
        check_start_settings(config, checked, start_rights(config), partial(_all_agents, folder))
    if checked.guards != config.guards:
        # Learned guards among the pinned ones replace some of the configured ones.
        raise ConfigError(
            f"set: guards: found {short_error_value(checked.guards)}, expected "
            f"{short_error_value(config.guards)}: a fork "
            "keeps the guards of the job it goes on from; start a new job to have others"
        )
    layers, before = configuration_layers(folder), config.prompt_files
    changed = {
        role: file for role, file in checked.prompt_files.items() if file != before.get(role)
    }
    follows: dict[str, Any] = {
        "templates": config.templates | _read_prompt_templates(changed, layers)
    }
    if checked.graph != config.graph:
        base = load_layered_graph_schema(layers)
        follows["graph_schema"] = extend_graph_schema(base, checked.graph, Path(config.name))
    if _reviewer_name(checked) != _reviewer_name(config):
        follows["reviewer"] = _load_reviewer_agent(checked, folder)
    elif config.reviewer and config.reviewer.model == config.model_for("strategic"):
        model = checked.phase_models.get("strategic", checked.model)
        follows["reviewer"] = config.reviewer.model_copy(update={"model": model})
    # The copy shares nothing with the original, which its job continues to use.
    return config.model_copy(
        update={name: getattr(checked, name) for name in AgentFile.model_fields} | follows,
        deep=True,
    )


def _validate_agent_file(
    merged: MergedAgentFile, settings: dict[str, tuple[str, object]]
) -> AgentFile:
    """Validate the merged file with outside `settings`: (origin, value) by dotted key."""
    for key, (_, value) in settings.items():
        set_agent_key(merged.content, key, value)
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


def _is_parent_agent_key(key: str, other: str) -> bool:
    return f"{other}.".startswith(f"{key}.")


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


def load_graph_schema(path: Path) -> GraphSchema:
    """The schema in the file; empty without a file.

    Raises ConfigError: the file is invalid; the message names file and key.
    """
    if not path.exists():
        return GraphSchema()
    schema = read_yaml_model(path, GraphSchema)
    if unmet := schema.find_undeclared():
        raise ConfigError(f"{path}: {unmet}")
    return schema


def extend_graph_schema(base: GraphSchema, more: GraphSchema, source: Path) -> GraphSchema:
    """The schema extended by an agent's own kinds.

    An existing kind may get further properties and ends. Its present ones cannot change, since
    other jobs rely on them.

    Raises:
        ConfigError: the extension is invalid; the message names the agent's file and the key.
    """
    schema = base.model_copy(deep=True)
    for name, node in more.nodes.items():
        present = schema.nodes.setdefault(name, node)
        if present.key != node.key:
            raise ConfigError(
                f"{source}: graph.nodes.{name}.key: found {node.key!r}, expected {present.key!r}, "
                "which the graph has"
            )
        present.known_by += [each for each in node.known_by if each not in present.known_by]
    for name, relation in more.relations.items():
        known = schema.relations.setdefault(name, relation)
        known.ends += [pair for pair in relation.ends if pair not in known.ends]
    for group, theirs, ours in (
        ("nodes", more.nodes, schema.nodes),
        ("relations", more.relations, schema.relations),
    ):
        for name in theirs:
            have = ours[name].properties
            for key, declared in theirs[name].properties.items():
                if have.setdefault(key, declared) != declared:
                    raise ConfigError(
                        f"{source}: graph.{group}.{name}.properties.{key}: the graph declares it "
                        "otherwise, expected a name of its own"
                    )
    if unmet := schema.find_undeclared():
        raise ConfigError(f"{source}: graph.{unmet}")
    return schema


def load_layered_graph_schema(layers: Layers) -> GraphSchema:
    """The shipped graph schema with the additions of each folder above.

    Raises ConfigError: a schema is invalid; the message names file and key.
    """
    shipped, *additions = reversed([folder / "graph" / "schema.yaml" for folder in layers.folders])
    schema = load_graph_schema(shipped)
    for path in additions:
        if path.is_file():
            schema = extend_graph_schema(schema, read_yaml_model(path, GraphSchema), path)
    return schema
