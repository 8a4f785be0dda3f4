"""Sends a signal to a job and says what came of it."""

import asyncio
import getpass
import socket
from contextlib import suppress
from typing import Any

from temporalio.client import (
    Client,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowUpdateFailedError,
    WorkflowUpdateRPCTimeoutOrCancelledError,
    WorkflowUpdateStage,
)
from temporalio.exceptions import ApplicationError
from temporalio.service import RPCError, RPCStatusCode

from cli.jobs.job_memo import JOB, TRIAL
from cli.jobs.job_view import JobView, view_job
from cli.jobs.missing_jobs import forgotten_job_notice
from cli.output import UserError
from protocol.notices import PersonAct
from protocol.payloads import UPDATE
from protocol.status import ProjectStatus

PATIENCE_SECONDS = 10.0
"""Seconds to wait for the act: a job reads signals only between steps."""
MAX_SENDER = 100
TRIAL_SIGNALS = ("cancel", "pause", "resume", "limit")
"""Signals that a trial takes; the others are for one of its runs."""
CLOSED_MEANWHILE = "AcceptedUpdateCompletedWorkflow"
"""The server's type of the failure of an update that was accepted and not answered."""


async def send_signal(
    client: Client, job_id: str, signal: str, payload: dict[str, Any]
) -> tuple[PersonAct | None, JobView]:
    """Send a signal; return what came of it, and the job's state after it.

    Without a worker it is sent as a signal, which the server keeps until the job goes on.

    Returns:
        The act; None if the job has not taken the signal yet.

    Raises:
        UserError: The job does not exist or is closed, or it refused the signal.
    """
    before = await view_job(client, job_id)
    if signal not in TRIAL_SIGNALS:
        before.refuse_trial(f"takes no signal {signal}")
    kind = "trial" if before.kind == TRIAL else "job"
    if before.closed:
        closed = f"{kind} {job_id} is closed ({before.status.status}); it takes no signals"
        if signal in ("rewind", "tell") and not isinstance(before.status, ProjectStatus):
            closed += f"; `starter.py fork {job_id}` begins another job from its end, or with"
            closed += " --phase N from a phase of it"
        raise UserError(forgotten_job_notice(job_id) or closed)
    handle = client.get_workflow_handle(job_id)
    values = [{**payload, "by": signal_sender_name()}]
    act, refused = None, ""
    try:
        if before.live:
            act = await _update_job(handle, [signal, *values])
            refused = act.refused if act else ""
        else:
            await handle.signal(signal, args=values)
    except WorkflowUpdateFailedError as error:
        cause = error.cause
        if not isinstance(cause, ApplicationError) or cause.type != CLOSED_MEANWHILE:
            refused = getattr(cause, "message", "") or str(cause)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise UserError(f"{kind} {job_id} closed just now; it takes no signals") from None
        raise
    if refused:
        raise UserError(f"{kind} {job_id} refused: signal {signal}: {refused}")
    if signal == "cancel" and act and not act.to:
        with suppress(TimeoutError, WorkflowFailureError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                await handle.result()
    return act, await view_job(client, job_id, seconds=2)


async def _update_job(handle: WorkflowHandle[Any, Any], values: list[Any]) -> PersonAct | None:
    """Return the act; None if there is none in time. Raises WorkflowUpdateFailedError."""
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            update = await handle.start_update(
                UPDATE, args=values, wait_for_stage=WorkflowUpdateStage.ACCEPTED
            )
            answer = await update.result()
    except (TimeoutError, WorkflowUpdateRPCTimeoutOrCancelledError):
        return None
    return PersonAct.model_validate(answer) if answer else None


def signal_sender_name() -> str:
    """Return the person who types as `ada@host`, as far as known."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:MAX_SENDER]


def start_by_sender(kind: str, data: dict[str, Any]) -> dict[str, Any]:
    """Return the input of a start with who types it; of a trial, in the start of its runs."""
    if kind == TRIAL:
        return {**data, "start": start_by_sender(JOB, data["start"])}
    return {"by": signal_sender_name(), **data}
