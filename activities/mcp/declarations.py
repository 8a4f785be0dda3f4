"""Ask an agent's servers for their tools at the start of a job; the answers are pinned."""

import hashlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from jsonschema.exceptions import SchemaError
from mcp.types import Tool, ToolAnnotations

from activities.mcp.call_errors import ServerUnavailable
from activities.mcp.servers import ListedTools, worker_mcp_servers
from activities.text.safe_text import NAME_CHARACTERS, replace_surrogates, safe_tool_name
from activities.toolkit.arguments import SchemaArguments
from activities.toolkit.registry import REGISTRY
from config.schema.agent import AgentConfig, ConfigError
from config.schema.mcp_servers import DeclaredTool, Effect, Server

MAX_DESCRIPTION = 8_000
MAX_SCHEMA = 60_000
"""Longest schema, in characters; a larger one would fill the model's context by itself."""


def declare_tools(config: AgentConfig) -> list[str]:
    """Add the servers' declared tools to the configuration; return notices for people.

    Raises:
        ServerUnavailable: a required server is not there.
        ConfigError: the configuration names a tool that its server does not have.
    """
    declared: list[DeclaredTool] = []
    config.unavailable_servers, notes = {}, []
    for name, server in config.mcp.items():
        try:
            listed, left_out = _fetch_tool_declarations(name, server)
        except ServerUnavailable as error:
            if server.away == "park":
                raise
            config.unavailable_servers[name] = str(error)
            notes.append(f"the job goes on without the tools of {name}. {error}")
            continue
        notes += [f"the tool {tool} of {name} is left out: {why}" for tool, why in left_out.items()]
        _check_declared_mcp_tools(config.name, name, server, {t.name for t in listed} | {*left_out})
        # By name: a server that ignores paging lists the same tools again.
        for _, tool in sorted({tool.name: tool for tool in listed}.items()):
            if server.tools is not None and tool.name not in server.tools:
                continue
            if why := _undeclarable_tool_reason(tool):
                notes.append(f"the tool {tool.name} of {name} is left out: {why}")
                continue
            # A tool of one's own may be called like one of a server.
            used_names = {*REGISTRY, *(other.name for other in declared)}
            declared.append(_declare_tool(name, server, tool, used_names))
    config.server_tools = declared
    return notes


def _fetch_tool_declarations(name: str, server: Server) -> ListedTools:
    if server.cwd is None:
        return worker_mcp_servers().list_tools(name, server)
    with TemporaryDirectory() as empty:
        return worker_mcp_servers().list_tools(name, server, Path(empty))


def _check_declared_mcp_tools(agent: str, name: str, server: Server, names: set[str]) -> None:
    for key, named_tools in (("tools", server.tools or []), ("effects", list(server.effects))):
        if lacking := [tool for tool in named_tools if tool not in names]:
            raise ConfigError(
                f"agent {agent}: mcp.{name}.{key}: {', '.join(lacking)} is no tool of the server; "
                f"it has {', '.join(sorted(names)) or 'none'}"
            )


def _undeclarable_tool_reason(tool: Tool) -> str:
    """Return why the tool cannot be offered; empty if it can."""
    if len(json.dumps(tool.input_schema)) > MAX_SCHEMA:
        return f"its schema is longer than {MAX_SCHEMA:,} characters"
    if tool.input_schema.get("type", "object") != "object":
        return "its schema is not that of an object"
    try:
        SchemaArguments(tool.input_schema).check_schema()
    except SchemaError as error:
        return f"its schema is not valid: {error.message[:200]}"
    return ""


def _declare_tool(server: str, settings: Server, tool: Tool, used_names: set[str]) -> DeclaredTool:
    effect = settings.effects.get(tool.name) or declared_effect(tool.annotations)
    description = (
        replace_surrogates(tool.description or tool.title or tool.name).strip() or tool.name
    )
    return DeclaredTool(
        name=unique_mcp_tool_name(server, tool.name, used_names),
        server=server,
        tool=tool.name,
        description=description[:MAX_DESCRIPTION],
        parameters={"type": "object", "properties": {}, **tool.input_schema},
        effect=effect,
    )


def declared_effect(hints: ToolAnnotations | None) -> Effect:
    """Return a tool's effect as declared by the server; by default a call may change something each
    time.
    """
    if hints and hints.read_only_hint:
        return "reads"
    return "repeatable" if hints and hints.idempotent_hint else "once"


def unique_mcp_tool_name(server: str, tool: str, used_names: set[str]) -> str:
    """Return an unused name `<server>__<tool>` without characters that endpoints refuse."""
    full = f"{server}__{tool}"
    name = safe_tool_name(full)
    if name != full or len(name) > NAME_CHARACTERS or name in used_names:
        digest = hashlib.sha1(full.encode()).hexdigest()[:8]
        name = f"{name[: NAME_CHARACTERS - 9]}_{digest}"
    return name
