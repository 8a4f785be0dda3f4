"""Sends a signal to a job and waits for its effect."""

from __future__ import annotations

import asyncio
import getpass
import socket
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.jobs.job_view import TRIAL, JobView, view_job
from cli.jobs.missing_jobs import forgotten_job_notice
from cli.output import UserError
from cli.signals.signal_effects import REFUSED, Effect, notices_after_signal
from protocol.payloads import SIGNALS

PATIENCE_SECONDS = 10.0
"""Seconds to wait for the effect: a job reads signals only between steps."""
HANDED_ON = "signal {signal}: handed on to job "
"""Start of a project's notice that it passed a signal to one of its jobs."""
MAX_SENDER = 100
TRIAL_SIGNALS = ("cancel", "pause", "resume", "limit")
"""Signals that a trial takes; the others are for one of its runs."""


async def send_signal_and_wait(
    client: Client, job_id: str, signal: str, payload: dict[str, Any], effect: Effect
) -> tuple[bool, JobView, str]:
    """Send a signal and wait until it takes effect or is refused, or for `PATIENCE_SECONDS`.

    Returns:
        Whether the effect was seen; the job's last state; and, for a project, the job to which it
        passed the signal.

    Raises:
        UserError: The job does not exist or is closed, or it refused the signal.
    """
    before = await view_job(client, job_id)
    if signal not in TRIAL_SIGNALS:
        before.refuse_trial(f"takes no signal {signal}")
    kind = "trial" if before.kind == TRIAL else "job"
    if before.closed:
        closed = f"{kind} {job_id} is closed ({before.status_word}); it takes no signals"
        if signal in ("rewind", "tell") and not before.status.get("project"):
            closed += f"; `starter.py fork {job_id}` begins another job from its end, or with"
            closed += " --phase N from a phase of it"
        raise UserError(forgotten_job_notice(job_id) or closed)
    try:
        sent = {**payload, "by": signal_sender_name()}
        await client.get_workflow_handle(job_id).signal(signal, sent)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise UserError(f"job {job_id} closed just now; it takes no signals") from None
        raise
    loop = asyncio.get_running_loop()
    end = loop.time() + (PATIENCE_SECONDS if before.live else 0)
    while True:
        current = await view_job(client, job_id, seconds=2)
        for_one_job = current.status.get("project") and SIGNALS[signal].for_one_job
        if for_one_job and (to := _signal_recipient(signal, before, current)):
            return True, current, to
        # A question of the project itself is answered by the project.
        if effect(before, current):
            return True, current, ""
        # After a long step a job may refuse signals of several people at once, so match ours.
        ours = f"{REFUSED}signal {signal}: "
        refused = [text for text in notices_after_signal(before, current) if text.startswith(ours)]
        if refused:
            raise UserError(f"{kind} {job_id} {refused[-1]}")
        if current.closed or loop.time() >= end:
            return False, current, ""
        await asyncio.sleep(0.2)


def signal_sender_name() -> str:
    """Return the person who types as `ada@host`, as far as known."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:MAX_SENDER]


def _signal_recipient(signal: str, before: JobView, after: JobView) -> str:
    start = HANDED_ON.format(signal=signal)
    notices = [text for text in notices_after_signal(before, after) if text.startswith(start)]
    return notices[-1].removeprefix(start) if notices else ""
