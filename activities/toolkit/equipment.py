"""The tools of one agent: those of the registry that it names, and those of its MCP servers."""

from __future__ import annotations

from activities.toolkit.registry import REGISTRY, Tool, select
from activities.toolkit.remote import remote_tool
from config.schema.agent import AgentConfig, Problem


def toolbox(config: AgentConfig) -> dict[str, Tool]:
    """Every tool that the agent's configuration may name, by name: the registry's come first."""
    return REGISTRY | {tool.name: tool for tool in _remote(config)}


def equipment(config: AgentConfig) -> list[Tool]:
    """The tools that the agent has. Those of a server need not be named: its entry says it all.

    Raises:
        NoSuchTool: the configuration names what is neither a tool nor a group.
    """
    found = [*select(config.toolset), *_remote(config)]
    names = {"", *(entry.name for entry in found)}
    return [entry for entry in found if entry.needs in names or entry.name in config.tools]


def has_tool(config: AgentConfig, name: str) -> bool:
    """Whether the agent has this tool of the registry."""
    return any(entry.name == name for entry in select(config.toolset))


def check_servers(config: AgentConfig) -> None:
    """A server's name is that of a group.

    Raises:
        Problem: one is taken.
    """
    taken = {entry.group for entry in REGISTRY.values()} | REGISTRY.keys()
    if clash := [name for name in config.mcp if name in taken]:
        raise Problem(
            f"agent {config.name}: mcp: {clash[0]} is the name of a tool or a group of tools; "
            "call the server something else"
        )


def _remote(config: AgentConfig) -> list[Tool]:
    return [remote_tool(declared, config.mcp[declared.server]) for declared in config.declared]
