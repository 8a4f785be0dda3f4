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
    set_agent_key,
    unknown_agent_message,
)
from config.graph_schema_files import extend_graph_schema, load_layered_graph_schema
from config.guard_files import load_agent_guards
from config.layers import SHIPPED, Layers, configuration_layers
from config.schema.agent import AgentConfig, AgentFile, ConfigError
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
        key: (variable, _parse_limit(text) if key.startswith("limits.") else text)
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
        rules=load_agent_guards(checked.guards, merged, layers),
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


def _parse_limit(text: str) -> int | str:
    """Parse an integer; return other text unchanged, for the schema to refuse."""
    return int(text) if text.isdecimal() and len(text) < 20 else text


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
