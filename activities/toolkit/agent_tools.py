"""The tools of one agent: those it names from the registry, and those of its MCP servers."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from activities.toolkit.registry import REGISTRY, Tool, select_registered_tools
from activities.toolkit.remote_tools import remote_tool
from config.schema.agent import AgentConfig, ConfigError
from config.schema.shell import LAYER, ShellConfig
from protocol.phase import PhaseKind
from protocol.short_text import first_few

COMMAND_TOOL = "run_command"
BY_COMMAND = frozenset(("wait", "move_file", "generate_workspace_summary"))
"""Tools that an agent with commands has only while it works: its other requests stay small."""
MAX_HOSTS = 10
"""Hosts that the description of the command tool names."""


def agent_tools_by_name(config: AgentConfig) -> dict[str, Tool]:
    """Return all tools a configuration may name, by name; those of the registry come first."""
    tools = [*REGISTRY.values(), *_agent_mcp_tools(config)]
    return {tool.name: _agent_tool(tool, config) for tool in tools}


def agent_tools(config: AgentConfig) -> list[Tool]:
    """Return the agent's tools. Tools of configured servers are always included.

    Raises:
        UnknownTool: The configuration has a name that is neither a tool nor a group.
    """
    tools = [*select_registered_tools(config.toolset), *_agent_mcp_tools(config)]
    names = {"", *(entry.name for entry in tools)}
    return [
        _agent_tool(entry, config)
        for entry in tools
        if entry.needs in names or entry.name in config.tools
    ]


def agent_has_tool(config: AgentConfig, name: str) -> bool:
    """Return whether the agent has this registry tool."""
    return any(entry.name == name for entry in select_registered_tools(config.toolset))


def check_agent_server_names(config: AgentConfig) -> None:
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


def _agent_tool(entry: Tool, config: AgentConfig) -> Tool:
    """Return the tool as the agent has it.

    An agent with commands whose work is one list looks and mends until its end: each of its tools
    belongs to both kinds of phase. Its plan has one phase, so that it hands over no list within it.
    A judge of phases still sees the end of the list first.
    """
    is_single = config.todos.work and agent_has_tool(config, COMMAND_TOOL) and not config.judge
    if is_single and entry.name in BY_COMMAND:
        entry = replace(entry, phases=("tactical",))
    elif is_single and entry.name != "todo_write":
        entry = replace(entry, phases=get_args(PhaseKind))
    return _describe_agent_command_tool(entry, config.shell)


def _describe_agent_command_tool(entry: Tool, shell: ShellConfig) -> Tool:
    """Return the tool; the command tool's description names what is configured for commands."""
    if entry.name != COMMAND_TOOL or not (shell.setup or shell.hosts):
        return entry
    parts = [entry.summary]
    if shell.setup:
        parts.append(f"Programs installed for this job are in {LAYER}/bin, which is in PATH.")
    if shell.hosts:
        hosts = first_few(shell.hosts, MAX_HOSTS)
        parts.append(f"Over HTTP it reaches these hosts only: {hosts}.")
    return replace(entry, summary=" ".join(parts))


def _agent_mcp_tools(config: AgentConfig) -> list[Tool]:
    return [remote_tool(declared, config.mcp[declared.server]) for declared in config.server_tools]
