"""Tools of MCP servers, built from the declarations pinned when the job began."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from textwrap import shorten
from typing import Any

from activities.toolkit.arguments import SchemaArguments
from activities.toolkit.registry import Tool
from activities.toolkit.tool_context import ToolContext
from config.schema.mcp_servers import DeclaredTool, Server

SUMMARY_CHARACTERS = 400
"""Length of the description that is sent with every request."""
FOLDER_SECONDS = 120
"""Time to create a private folder and read it back."""
SLACK_SECONDS = 15


def remote_tool(declared: DeclaredTool, server: Server) -> Tool:
    """Return the tool by which a job calls the server's tool."""
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
    calling = import_module("activities.mcp.server_tool_call")
    text: str = calling.call_mcp_tool(declared, context, arguments)
    return text
