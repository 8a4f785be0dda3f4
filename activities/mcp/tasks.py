"""The protocol's tasks: a server answers a call with a handle, and gives the result later.

Extension io.modelcontextprotocol/tasks of 2026-07-28; see its specification for each field.
"""

from collections.abc import Sequence
from typing import Any, Literal

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.types import CallToolResult, InputRequests, InputResponses, Request, RequestParams, Result

from activities.redaction.credentials import hide_credentials
from activities.redaction.secrets import redact
from activities.text.safe_text import replace_surrogates
from config.schema.mcp_servers import Server
from protocol.requests import Pending
from protocol.short_text import one_line

SOONEST, LATEST = 1.0, 60.0
"""Bounds of the seconds between two polls, unless the server names a longer interval."""
PART = 10
"""A task is polled again after this share of its age."""
MOST_SECONDS = 3600.0


class CreatedTask(Result):
    """A task that a call is answered with."""

    result_type: Literal["task"] = "task"
    task_id: str
    status: str = "working"
    status_message: str | None = None
    poll_interval_ms: float | None = None


class TaskState(Result):
    """A task's status, with its result if it has ended."""

    status: str
    status_message: str | None = None
    poll_interval_ms: float | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None
    input_requests: InputRequests | None = None


class TaskParams(RequestParams):
    task_id: str
    input_responses: InputResponses | None = None


class TaskRequest(Request[TaskParams, str]):
    """`tasks/get`, `tasks/update` or `tasks/cancel`; intermediaries route by the task's id."""

    name_param = "taskId"


class Tasks(ClientExtension):
    """Declares to servers that the client supports tasks."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return (ResultClaim(result_type="task", model=CreatedTask, resolve=_refuse_mcp_task_claim),)


async def _refuse_mcp_task_claim(_: CreatedTask, __: ClaimContext) -> CallToolResult:
    raise RuntimeError("tasks are polled by the workflow")


def until_next_poll(task: CreatedTask | TaskState, pending: Pending, now: float) -> float:
    """Return the seconds until the next poll: at least the server's interval, growing with the
    task's age.
    """
    interval = (task.poll_interval_ms or 0) / 1000
    slower = min(LATEST, (now - pending.begun) / PART)
    return min(max(SOONEST, interval, slower), MOST_SECONDS)


def is_task_overdue(server: Server, pending: Pending, now: float) -> bool:
    return now - pending.begun > server.task_seconds


def task_status_text(task: CreatedTask | TaskState) -> str:
    return hide_credentials(redact(replace_surrogates(one_line(task.status_message or "", 200))))
