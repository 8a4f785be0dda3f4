"""The tools of one agent: those it names from the registry, and those of its MCP servers."""

from dataclasses import replace
from functools import partial
from importlib import import_module
from textwrap import shorten
from typing import Any, get_args

from activities.toolkit.arguments import SchemaArguments
from activities.toolkit.registry import REGISTRY, Tool, select_registered_tools
from activities.toolkit.tool_context import ToolContext
from config.schema.agent import AgentConfig, ConfigError
from config.schema.mcp_servers import DeclaredTool, Server
from config.schema.shell import LAYER, ShellConfig
from protocol.phase import PhaseKind
from protocol.short_text import first_few

COMMAND_TOOL = "run_command"
BY_COMMAND = frozenset(("wait", "move_file", "generate_workspace_summary"))
"""Tools that an agent with commands has only while it works: its other requests stay small."""
MAX_HOSTS = 10


def agent_tools_by_name(config: AgentConfig) -> dict[str, Tool]:
    tools = [*REGISTRY.values(), *_agent_mcp_tools(config)]
    return {tool.name: _agent_tool(tool, config) for tool in tools}


def agent_tools(config: AgentConfig) -> list[Tool]:
    """Return the agent's tools, with all of configured servers. Raises UnknownTool."""
    tools = [*select_registered_tools(config.toolset), *_agent_mcp_tools(config)]
    names = {"", *(entry.name for entry in tools)}
    return [
        _agent_tool(entry, config)
        for entry in tools
        if entry.needs in names or entry.name in config.tools
    ]


def agent_has_tool(config: AgentConfig, name: str) -> bool:
    return any(entry.name == name for entry in select_registered_tools(config.toolset))


def ends_job_in_list(config: AgentConfig) -> bool:
    """Return whether the job ends within its one list of work: where its commands are seen, no
    todos are shown, or the list itself ends with the call.
    """
    calls_end = config.todos.work_calls_job_complete
    has_end = config.plain or calls_end or agent_has_tool(config, COMMAND_TOOL)
    return bool(config.todos.work and has_end and not config.judge)


def check_agent_server_names(config: AgentConfig) -> None:
    used_names = {entry.group for entry in REGISTRY.values()} | REGISTRY.keys()
    if clash := [name for name in config.mcp if name in used_names]:
        raise ConfigError(
            f"agent {config.name}: mcp: {clash[0]} is the name of a tool or a group of tools; "
            "call the server something else"
        )


def _agent_tool(entry: Tool, config: AgentConfig) -> Tool:
    """Return the tool as the agent has it.

    Each tool of an agent that ends its job within its list belongs to both kinds of phase. Its plan
    has one phase, so that it hands over no list within it.
    """
    is_single = ends_job_in_list(config)
    if is_single and entry.name in BY_COMMAND:
        entry = replace(entry, phases=("tactical",))
    elif is_single and entry.name != "todo_write":
        entry = replace(entry, phases=get_args(PhaseKind))
    return _describe_agent_command_tool(entry, config.shell)


def _describe_agent_command_tool(entry: Tool, shell: ShellConfig) -> Tool:
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


SUMMARY_CHARACTERS = 400
"""Length of the description that is sent with every request."""
FOLDER_SECONDS = 120
"""Time to create a private folder and read it back."""
SLACK_SECONDS = 15


def remote_tool(declared: DeclaredTool, server: Server) -> Tool:
    first, _, rest = declared.description.partition("\n\n")
    summary = shorten(first, SUMMARY_CHARACTERS, placeholder=" …")
    cut = summary != " ".join(first.split())
    # Twice, since a dead server is restarted.
    seconds = 2 * (server.start_seconds + server.call_seconds) + SLACK_SECONDS
    return Tool(
        name=declared.name,
        group=declared.server,
        summary=summary,
        documentation=declared.description if cut else rest.strip(),
        arguments=SchemaArguments(declared.parameters),
        function=partial(_call_remote_tool, declared),
        phases=("tactical",),
        effect="outside",
        local=False,
        seconds=seconds + (FOLDER_SECONDS if server.cwd else 0),
        polling=False,
        at_most_once=declared.effect == "once",
        looks=declared.effect == "reads",
        # Images of its answers.
        owns=("received/",),
    )


def _call_remote_tool(declared: DeclaredTool, context: ToolContext, /, **arguments: Any) -> str:
    # Imported on use: the protocol library takes a second to load, and most workers have no server.
    calling = import_module("activities.mcp.call_turns")
    text: str = calling.call_mcp_tool(declared, context, arguments)
    return text
