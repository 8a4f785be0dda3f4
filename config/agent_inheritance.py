"""The merge of an agent's file with those that it extends and with the defaults.

An agent file is merged over the one it `extends` (another agent's name; without the key, the
defaults). Mappings merge key by key; lists and plain values replace the earlier ones.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from config.layers import DEFAULTS, Layers, configuration_layers
from config.schema.agent import ConfigError
from config.yaml_files import read_yaml_mapping
from protocol.validation_errors import short_error_value


@dataclass(frozen=True)
class MergedAgentFile:
    """An agent's file merged over all files that it extends."""

    content: dict[str, Any]
    files: list[tuple[Path, dict[str, Any]]]
    """The files with their own content, the agent's own first, the defaults last."""
    agents: list[str]
    """The agent and the agents that it extends, the nearest first."""

    @property
    def own_content(self) -> dict[str, Any]:
        """What the agent and the agents that it extends say, without the defaults."""
        content: dict[str, Any] = {}
        for _, more in reversed(self.files[: len(self.agents)]):
            content = merge_mappings(content, more)
        return content

    def find_file_with_key(self, place: tuple[str | int, ...]) -> Path:
        """The file that sets a key; the agent's own file if none does."""
        return next(
            (path for path, content in self.files if _has_nested_key(content, place)),
            self.files[0][0],
        )


def layer_agents(layers: Layers) -> list[str]:
    """The names of the agents in these folders, sorted."""
    return sorted(path.parent.name for path in layers.list_files("agents/*/agent.yaml"))


def agent_path(name: str) -> str:
    """The path of an agent's file within a folder of configuration."""
    return f"agents/{name}/agent.yaml"


def extended_agents(name: str, folder: Path) -> list[str]:
    """The agents that an agent extends, the nearest first; empty if it extends only the defaults.

    Raises ConfigError: unknown agent, unreadable file, or a cycle.
    """
    merged = merge_agent(name, configuration_layers(folder), [])
    return [each for each in dict.fromkeys(merged.agents) if each != name]


def _has_nested_key(content: Any, place: tuple[str | int, ...]) -> bool:
    try:
        for key in place:
            content = content[key]
    except (KeyError, IndexError, TypeError):
        return False
    return True


def merge_agent(name: str, layers: Layers, extending: list[str]) -> MergedAgentFile:
    """The file of an agent, merged.

    Args:
        layers: The folders to look in.
        extending: The agents that led here; one that comes up again is a circle.

    Raises:
        ConfigError: unknown agent, unreadable file, or a circle.
    """
    if name not in (known := layer_agents(layers)):
        raise ConfigError(
            f"agent {short_error_value(name)} is not known; the agents are {', '.join(known)}"
        )
    path = layers.find_file(agent_path(name))
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
    elif parent == name and name in layer_agents(weaker := layers.below(path)):
        # An agent that extends its own name extends the weaker one.
        above = merge_agent(name, weaker, extending)
    elif parent in known:
        above = merge_agent(parent, layers, [*extending, name])
    else:
        raise ConfigError(f"{path}: extends: {unknown_agent_message(parent, known)}")
    content = merge_mappings(above.content, agent_content)
    return MergedAgentFile(content, [(path, agent_content), *above.files], [name, *above.agents])


def _merge_defaults(layers: Layers) -> MergedAgentFile:
    shipped = layers.folders[-1] / DEFAULTS
    additions = [path for path in layers.list_all(DEFAULTS) if path != shipped]
    files = [(path, read_yaml_mapping(path)) for path in (*additions, shipped)]
    content: dict[str, Any] = {}
    for _, more in reversed(files):
        content = merge_mappings(content, more)
    return MergedAgentFile(content, files, [])


def unknown_agent_message(value: object, known: list[str]) -> str:
    """The message about a value that is no agent's name."""
    return (
        f"expected the name of an agent, found {short_error_value(value)}; the agents are "
        f"{', '.join(known)}"
    )


def merge_mappings(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """A new mapping: `over` merged over `base`, key by key."""
    result = dict(base)
    for key, value in over.items():
        present = result.get(key)
        both = isinstance(present, dict) and isinstance(value, dict)
        result[key] = merge_mappings(present, value) if both else value  # type: ignore[arg-type]
    return result


def overridden_agent_value(overrides: dict[str, object], key: str) -> object:
    """The overriding value of a dotted key, in nested or dotted form; None without one."""
    content: Any = {}
    for name, value in overrides.items():
        set_agent_key(content, name, value)
    for part in key.split("."):
        content = content.get(part) if isinstance(content, dict) else None
    return content


def set_agent_key(merged: dict[str, Any], dotted: str, value: object) -> None:
    *parents, last = dotted.split(".")
    section = merged
    for key in parents:
        inner = section.get(key)
        # A copy, since other agents share the mapping.
        section[key] = dict(inner) if isinstance(inner, dict) else {}
        section = section[key]
    # As in files, a mapping is merged key by key.
    section[last] = merge_mappings(section, {last: value})[last]
