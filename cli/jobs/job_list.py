"""The newest jobs in Temporal's visibility store."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus

from cli.jobs.job_memo import JOB, PROJECT, TRIAL, job_start_time, read_job_memo
from cli.jobs.job_view import CLOSED
from protocol.payload_reading import EncryptedPayloadError
from protocol.short_text import one_line

PAGE = 200
MOST_STATE = 60
"""Maximum length of a table cell: a waiting start lists everything it lacks."""


async def list_jobs(
    client: Client, limit: int, *, is_open: bool = False
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Return the newest jobs in Temporal's visibility store, and the open ones by task queue.

    It needs no worker.

    Args:
        client: Of the server.
        limit: Maximum number.
        is_open: Whether to leave out jobs that have ended.
    """
    jobs: list[tuple[datetime, dict[str, Any]]] = []
    open_jobs: dict[str, list[str]] = {}
    # Earlier runs of a job that continued as new are not jobs of their own.
    query = (
        f"WorkflowType IN ('{JOB}', '{PROJECT}', '{TRIAL}') AND ExecutionStatus != 'ContinuedAsNew'"
    )
    if is_open:
        query += " AND ExecutionStatus = 'Running'"
    # Bounded, since a page is one message and memos may be large.
    known: set[str] = set()
    async for execution in client.list_workflows(query, page_size=PAGE):
        if execution.id in known:
            continue  # a run before a reset; newest runs come first
        if len(known) == limit:
            break
        known.add(execution.id)
        try:
            memo = await read_job_memo(execution)
        except EncryptedPayloadError as error:
            memo = {"title": f"cannot be read: {error}"}
        outcome = CLOSED.get(execution.status or WorkflowExecutionStatus.RUNNING)
        if outcome == "completed" and memo.get("status") in ("failed", "cancelled"):
            # For Temporal, a failed project or a cancelled trial completes with a result.
            outcome = str(memo["status"])
        if outcome is None:
            open_jobs.setdefault(execution.task_queue, []).append(execution.id)
        started = job_start_time(execution, memo)
        state = str(memo.get("phase") or memo.get("state") or "")
        row = {
            "job_id": execution.id,
            "agent": one_line(str(memo.get("agent") or ""), MOST_STATE) or None,
            "status": outcome or memo.get("status") or "running",
            "phase": one_line(state, MOST_STATE) or None,
            "met": one_line(str(memo.get("met") or ""), MOST_STATE) or None,
            "title": memo.get("title"),
            "started": f"{started.astimezone():%Y-%m-%d %H:%M %Z}",
        }
        jobs.append((started, row))
    # The server orders jobs by their newest runs.
    jobs.sort(key=lambda job: job[0], reverse=True)
    return [row for _, row in jobs], open_jobs
