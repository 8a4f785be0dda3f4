"""Starts a job, project or trial under a new id."""

import re
import secrets
from contextlib import suppress
from typing import Any

from temporalio.client import Client, WorkflowExecutionStatus
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import WorkflowAlreadyStartedError

from cli.jobs.job_memo import JOB, TRIAL, read_job_memo
from cli.jobs.job_view import describe_job, view_job
from cli.output import UserError
from cli.signals.signal_sending import start_by_sender
from engine.connection import task_queue
from engine.otel import optional_export

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def new_job_id(agent: str) -> str:
    """Return `<agent>-<6 random characters>`."""
    return f"{agent}-{secrets.token_hex(3)}"


def check_new_job_id(job_id: str) -> None:
    """Raise UserError for an id that is unsuitable as a folder name or in a link."""
    if not _ID.fullmatch(job_id):
        raise UserError(
            f"--id {job_id or repr(job_id)}: expected letters, digits and . _ - (at most 100, not "
            "starting with one of . _ -)"
        )


async def start_job(client: Client, job_id: str, data: dict[str, Any], kind: str = JOB) -> None:
    """Start the job or project. Raises UserError: the id is in use, or was used before."""

    async def begin(reuse: WorkflowIDReusePolicy) -> None:
        with optional_export.trace_start_if_exported(kind, job_id):
            await client.start_workflow(
                kind,
                start_by_sender(kind, data),
                id=job_id,
                task_queue=task_queue(),
                id_reuse_policy=reuse,
                id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            )

    try:
        # A closed job's id stays reserved: its workspace and checkpoints have it as their name.
        await begin(WorkflowIDReusePolicy.REJECT_DUPLICATE)
    except WorkflowAlreadyStartedError:
        with suppress(WorkflowAlreadyStartedError):  # somebody else was faster
            if await _job_never_began(client, job_id):
                await begin(WorkflowIDReusePolicy.ALLOW_DUPLICATE)
                return
        job_view = await view_job(client, job_id, seconds=1)
        word = "trial" if job_view.kind == TRIAL else "job"
        if job_view.closed:
            raise UserError(
                f"there was a {word} {job_id} already ({job_view.status.status}); choose another "
                "--id"
            ) from None
        raise UserError(
            f"{word} {job_id} is already running; none was started. Watch it with "
            f"`starter.py watch {job_id}` or choose another --id"
        ) from None


async def _job_never_began(client: Client, job_id: str) -> bool:
    """Return whether its start was refused, or cancelled while it waited.

    Such a job has no data besides Temporal's: a start checks everything before it creates anything.
    """
    description = await describe_job(client, job_id)
    ended = (WorkflowExecutionStatus.FAILED, WorkflowExecutionStatus.CANCELED)
    # The time of its beginning is in the memo from the first phase on.
    return description.status in ended and not (await read_job_memo(description)).get("began")
