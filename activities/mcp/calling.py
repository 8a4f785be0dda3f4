"""Calls of servers' tools, with a private folder where they work on files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from activities.commands.private import private_folder
from activities.mcp.errors import Away, Failed, Interrupted
from activities.mcp.results import text_of
from activities.mcp.servers import servers
from activities.toolkit.context import ToolContext
from activities.toolkit.errors import ToolError, Unreached
from config.servers import Declared

LOST = (
    "{why}. The call may have happened, wholly or in part, or not. Nothing of it is in the "
    "workspace. Check what is there before you call it again."
)


def call(declared: Declared, context: ToolContext, arguments: dict[str, Any]) -> str:
    """The result, as text; for a server that works on files, with what it changed in `context`.

    Raises:
        ToolError: the server says that it cannot be done, or was lost while it did it.
        Unreached: the server is not there, and nothing was done.
    """
    if context.config.mcp[declared.server].cwd is None:
        return _asked(declared, context, arguments, None)
    with private_folder(context.files, context.root, context.job) as private:
        text = _asked(declared, context, arguments, private.path)
        # The server has ended: nobody writes there any more.
        context.files = private.read_back()
    return "\n".join([text, *private.notes])


def _asked(
    declared: Declared, context: ToolContext, arguments: dict[str, Any], folder: Path | None
) -> str:
    again = declared.effect != "once"
    try:
        result = servers().call(
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
        raise ToolError(_from_within(str(failed), folder)) from failed
    except Interrupted as lost:
        if again:
            raise ToolError(f"{lost}. Try something smaller, or another way.") from lost
        raise ToolError(LOST.format(why=lost)) from lost
    text = text_of(result)
    if result.is_error:
        raise ToolError(_from_within(text, folder))
    return _relative(text, folder)


def _relative(text: str, folder: Path | None) -> str:
    """Paths as the workspace has them: the private folder's own is another in every attempt."""
    return text if folder is None else text.replace(f"{folder}/", "").replace(str(folder), ".")


def _from_within(error: str, folder: Path | None) -> str:
    """An error as well without the folders above, which are the host's. What a tool read may name
    such a path as a text of its own, and keeps it."""
    text = _relative(error, folder)
    for above, parent in enumerate(folder.parents[:-1] if folder else (), 1):
        path = rf"(?<![\w.-]){re.escape(str(parent))}(?![\w.-])"
        text = re.sub(path, "/".join([".."] * above), text)
    return text
