"""How commands talk: results on standard output, everything else on standard error."""

from __future__ import annotations

import asyncio
import codecs
import json
import sys
from collections.abc import Coroutine
from io import TextIOWrapper
from typing import Any, TypeVar

from rich.console import Console
from temporalio.service import RPCError, RPCStatusCode

from engine.connection import client_options
from protocol.errors import Refusal

OK = 0
FAILED = 1
"""The job failed or was cancelled, or a check failed."""
MISTAKE = 2
"""The user's mistake, or no server."""

T = TypeVar("T")


class UserError(Refusal):
    """Something the user has to put right. One line: what is wrong and what to do."""


def result_console() -> Console:
    """For results."""
    return Console(soft_wrap=True, highlight=False)


def err_console() -> Console:
    """For progress and notes, so that results can be piped."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


def show_anything() -> None:
    """Let what a stream cannot encode be written as escapes, not end the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def write_error(more: str = "") -> OSError | None:
    """Why results, and this, are not written; None if they are, or if nobody reads them."""
    try:
        print(more, end="", flush=True)
    except BrokenPipeError:
        return None
    except OSError as error:
        return error
    return None


def print_result(text: str) -> None:
    """A line of a result, as it is: no markup, no wrapping."""
    print(escape_controls(text))


def print_note(text: str) -> None:
    """A line that is not part of the result."""
    print(escape_controls(text), file=sys.stderr)


def escape_controls(text: str) -> str:
    """Control characters made visible: what a document or a model wrote must not steer the
    terminal."""
    return "".join(
        char if char in "\n\t" or char.isprintable() else f"\\x{ord(char):02x}" for char in text
    )


def print_json(value: object) -> None:
    """A result for programs."""
    print(json.dumps(value, ensure_ascii=not _takes_unicode(), indent=2, default=str))


def print_json_line(value: object) -> None:
    """One of several results for programs: a JSON object on a line of its own."""
    print(json.dumps(value, ensure_ascii=not _takes_unicode(), default=str), flush=True)


def _takes_unicode() -> bool:
    """Whether standard output takes any character: the escapes of others are no JSON."""
    return codecs.lookup(getattr(sys.stdout, "encoding", None) or "utf-8").name == "utf-8"


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work; what the server refuses becomes a Mistake."""
    try:
        return asyncio.run(work)
    except RPCError as error:
        raise UserError(server_error_text(error)) from None


def server_error_text(error: RPCError) -> str:
    """What the server refused, in one line."""
    where = client_options()["target_host"]
    message = " ".join(error.message.split())
    if error.status == RPCStatusCode.NOT_FOUND and "amespace" in message:
        return f"{message} (at {where}); set TEMPORAL_NAMESPACE to one that exists"
    if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED):
        return f"the Temporal server at {where} does not answer: {message}"
    return f"the Temporal server refused: {message}"
