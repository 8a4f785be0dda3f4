"""Errors of a call to a server, and what they mean for the model and the workflow."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from activities.toolkit.tool_errors import DependencyUnavailable, ToolError
from config.schema.mcp_servers import DeclaredTool
from protocol.errors import Interruption, Refusal, Unavailable


class ServerUnavailable(Unavailable):
    """The server cannot be reached and nothing was done; the message names it and what to do."""


class ServerCallFailed(Refusal):
    """The call was answered with an error; the message is for the model."""

    def __init__(self, message: str, code: int = 0) -> None:
        self.code = code
        super().__init__(message)


class ServerCallInterrupted(Interruption):
    """The call was sent and no answer came; the message says what happened instead."""


LOST = (
    "{why}. The call may have happened, wholly or in part, or not. Nothing of it is in the "
    "workspace. Check what is there before you call it again."
)

GONE = (
    "{server} had this tool when the job began, and its tools are those of that time. Do it "
    "another way, or say in the files what cannot be done."
)
_NO_SUCH_TOOL = re.compile(
    r"\b(unknown|no such|nonexistent) tool\b"
    r"|\btool\b.{0,100}\b(not found|unknown|does not exist)\b",
    re.IGNORECASE | re.DOTALL,
)
"""How servers, of which each has words of its own, say that they do not know a tool."""


@contextmanager
def convert_call_errors(declared: DeclaredTool, folder: Path | None = None) -> Iterator[None]:
    """Convert the errors of a call in the body.

    Raises:
        ToolError: the server reported an error, or was lost during the call.
        DependencyUnavailable: the server is not there, and nothing was done.
    """
    try:
        yield
    except ServerUnavailable as error:
        raise DependencyUnavailable(str(error)) from error
    except ServerCallFailed as failed:
        text = shorten_call_error_paths(str(failed), folder)
        raise ToolError(explain_server_error(declared, text)) from failed
    except ServerCallInterrupted as error:
        if declared.effect != "once":
            raise ToolError(f"{error}. Try something smaller, or another way.") from error
        raise ToolError(LOST.format(why=error)) from error


def explain_server_error(declared: DeclaredTool, error: str) -> str:
    """Return a server's error, with what it means if the server no longer has the tool."""
    if declared.tool not in error or not _NO_SUCH_TOOL.search(error):
        return error
    return f"{error.rstrip('. ')}. {GONE.format(server=declared.server)}"


def make_result_paths_relative(text: str, folder: Path | None) -> str:
    """Make paths relative to the workspace: the private folder differs in every attempt."""
    return text if folder is None else text.replace(f"{folder}/", "").replace(str(folder), ".")


def shorten_call_error_paths(error: str, folder: Path | None) -> str:
    """Remove the host's folders from an error as well.

    Text that a tool read may contain such a path, and keeps it.
    """
    text = make_result_paths_relative(error, folder)
    for above, parent in enumerate(folder.parents[:-1] if folder else (), 1):
        path = rf"(?<![\w.-]){re.escape(str(parent))}(?![\w.-])"
        text = re.sub(path, "/".join([".."] * above), text)
    return text
