"""Tools of MCP servers: each is made from what its server declared when the job began."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from textwrap import shorten
from typing import Any

from mcp.types import CallToolResult

from activities.mcp.errors import Away, Failed, Interrupted
from activities.mcp.results import text_of
from activities.mcp.servers import servers
from activities.private import private_folder
from activities.tools.arguments import SchemaArguments
from activities.tools.context import ToolContext, ToolError, Unreached
from activities.tools.registry import Tool
from config.servers import Declared, Server

SUMMARY = 400
"""Characters of a description that the model is sent with every request."""
FOLDER_SECONDS = 120
"""For making a private folder and reading it back."""
SLACK = 15
LOST = (
    "{why}. The call may have happened, wholly or in part, or not. Nothing of it is in the "
    "workspace. Check what is there before you call it again."
)


def remote_tool(declared: Declared, server: Server) -> Tool:
    """The tool by which a job calls the server's."""
    first, _, rest = declared.description.partition("\n\n")
    summary = shorten(first, SUMMARY, placeholder=" …")
    cut = summary != " ".join(first.split())
    # Twice: a server that was found dead is started anew.
    seconds = 2 * (server.start_seconds + server.call_seconds) + SLACK
    return Tool(
        name=declared.name,
        group=declared.server,
        summary=summary,
        documentation=declared.description if cut else rest.strip(),
        arguments=SchemaArguments(declared.parameters),
        function=partial(_call, declared),
        phases=("tactical",),
        effect="outside",
        local=False,
        seconds=seconds + (FOLDER_SECONDS if server.cwd else 0),
        ends_reply=False,
        polling=False,
        at_most_once=declared.effect == "once",
        owns=(),
    )


def _call(declared: Declared, context: ToolContext, /, **arguments: Any) -> str:
    if context.config.mcp[declared.server].cwd is None:
        return _answer(_asked(declared, context, arguments, None))
    with private_folder(context.files, context.root, context.job) as private:
        result = _asked(declared, context, arguments, private.path)
        text = _relative(text_of(result), private.path)
        if result.is_error:
            raise ToolError(text)
        # The server has ended: nobody writes there any more.
        context.files = private.read_back()
    return "\n".join([text, *private.notes])


def _asked(
    declared: Declared, context: ToolContext, arguments: dict[str, Any], folder: Path | None
) -> CallToolResult:
    again = declared.effect != "once"
    try:
        return servers().call(
            declared.server,
            context.config.mcp[declared.server],
            declared.tool,
            arguments,
            key=context.key,
            repeatable=again,
            folder=folder,
            wanted=context.heartbeat,
        )
    except Away as away:
        raise Unreached(str(away)) from away
    except Failed as failed:
        raise ToolError(_relative(str(failed), folder) if folder else str(failed)) from failed
    except Interrupted as lost:
        if again:
            raise ToolError(f"{lost}. Try something smaller, or another way.") from lost
        raise ToolError(LOST.format(why=lost)) from lost


def _answer(result: CallToolResult) -> str:
    text = text_of(result)
    if result.is_error:
        raise ToolError(text)
    return text


def _relative(text: str, folder: Path) -> str:
    """Paths as the workspace has them: the private folder's own is another in every attempt."""
    return text.replace(f"{folder}/", "").replace(str(folder), ".")
