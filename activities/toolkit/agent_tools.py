"""The tools of one agent: those it names from the registry, and those of its MCP servers."""

from __future__ import annotations

from activities.toolkit.registry import REGISTRY, Tool, select_tools
from activities.toolkit.remote import remote_tool
from config.schema.agent import AgentConfig, ConfigError


def tools_by_name(config: AgentConfig) -> dict[str, Tool]:
    """Return all tools a configuration may name, by name; those of the registry come first."""
    return REGISTRY | {tool.name: tool for tool in _server_tools(config)}


def agent_tools(config: AgentConfig) -> list[Tool]:
    """Return the agent's tools. Tools of configured servers are always included.

    Raises:
        UnknownTool: The configuration has a name that is neither a tool nor a group.
    """
    tools = [*select_tools(config.toolset), *_server_tools(config)]
    names = {"", *(entry.name for entry in tools)}
    return [entry for entry in tools if entry.needs in names or entry.name in config.tools]


def has_tool(config: AgentConfig, name: str) -> bool:
    """Return whether the agent has this registry tool."""
    return any(entry.name == name for entry in select_tools(config.toolset))


def check_servers(config: AgentConfig) -> None:
    """Check that no server's name, which is also its group, is already in use.

    Raises:
        ConfigError: A name is in use.
    """
    used_names = {entry.group for entry in REGISTRY.values()} | REGISTRY.keys()
    if clash := [name for name in config.mcp if name in used_names]:
        raise ConfigError(
            f"agent {config.name}: mcp: {clash[0]} is the name of a tool or a group of tools; "
            "call the server something else"
        )


def _server_tools(config: AgentConfig) -> list[Tool]:
    return [remote_tool(declared, config.mcp[declared.server]) for declared in config.server_tools]
