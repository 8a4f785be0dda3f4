"""Errors of the Temporal server, as a command reports them."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from temporalio.service import RPCError, RPCStatusCode

from cli.output import UserError
from engine.connection import client_options

T = TypeVar("T")


def run_server_work(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work; raise server errors as UserError."""
    try:
        return asyncio.run(work)
    except RPCError as error:
        raise UserError(temporal_error_text(error)) from None


def temporal_error_text(error: RPCError) -> str:
    """Describe a server error in one line."""
    where = client_options()["target_host"]
    message = " ".join(error.message.split())
    if error.status == RPCStatusCode.NOT_FOUND and "amespace" in message:
        return f"{message} (at {where}); set TEMPORAL_NAMESPACE to one that exists"
    if error.status in (RPCStatusCode.UNAVAILABLE, RPCStatusCode.DEADLINE_EXCEEDED):
        return f"the Temporal server at {where} does not answer: {message}"
    return f"the Temporal server refused: {message}"
