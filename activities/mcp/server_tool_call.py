"""Call servers' tools, with a private folder for servers that work on files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mcp.types import CallToolResult

from activities.commands.private_folder import private_folder
from activities.mcp.call_errors import (
    convert_call_errors,
    explain_server_error,
    make_result_paths_relative,
    shorten_call_error_paths,
)
from activities.mcp.call_turns import call_in_turns
from activities.mcp.result_images import put_result_images, take_result_images
from activities.mcp.results import result_text
from activities.mcp.servers import worker_mcp_servers
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from config.schema.mcp_servers import DeclaredTool


def call_mcp_tool(declared: DeclaredTool, context: ToolContext, arguments: dict[str, Any]) -> str:
    """Return the result as text; store changed files of a server that works on files in `context`.

    Raises:
        ToolError: the server reported an error, or was lost during the call.
        DependencyUnavailable: the server is not there, and nothing was done.
        Unfinished: it asks something, or works on a task.
    """
    if context.config.mcp[declared.server].cwd is None:
        return call_in_turns(declared, context, arguments)
    with private_folder(context.files, context.root, context.job) as private:
        text, images = _send_call(declared, context, arguments, private.path)
        # The server has ended, so nothing writes there any more.
        after = private.read_back(hide_credentials=True)
        context.files = put_result_images(after, images)
    return "\n".join([text, *private.notes])


def _send_call(
    declared: DeclaredTool, context: ToolContext, arguments: dict[str, Any], folder: Path
) -> tuple[str, dict[str, bytes]]:
    """Return the result as text, and its images."""
    with convert_call_errors(declared, folder):
        result = worker_mcp_servers().call_tool(
            declared.server,
            context.config.mcp[declared.server],
            declared.tool,
            arguments,
            key=context.key,
            repeatable=declared.effect != "once",
            folder=folder,
        )
    if not isinstance(result, CallToolResult):
        raise ToolError(f"{declared.server} asks something, and works on files: it cannot wait.")
    result, images = take_result_images(result, context.files.limit)
    text = result_text(result)
    if result.is_error:
        raise ToolError(explain_server_error(declared, shorten_call_error_paths(text, folder)))
    return make_result_paths_relative(text, folder), images
