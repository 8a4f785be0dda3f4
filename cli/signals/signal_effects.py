"""Sends a signal to a job and observes its effect."""

from __future__ import annotations

import asyncio
import getpass
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.jobs.job_view import TRIAL, JobView, check_job_is_no_trial, view_job
from cli.jobs.missing_jobs import forgotten_notice
from cli.output import UserError
from protocol.payloads import SIGNALS

PATIENCE_SECONDS = 10.0
"""Seconds to wait for the effect: a job reads signals only between steps."""

REFUSED = "refused: "
"""Start of a job's notice that it refused a signal."""

HANDED_ON = "signal {signal}: handed on to job "
"""Start of a project's notice that it passed a signal to one of its jobs."""
LACKS = "the folder may lack the last steps"
"""Start of a job's notice that its folder could not be updated."""
MAX_SENDER = 100
TRIAL_SIGNALS = ("cancel", "pause", "resume", "limit")
"""Signals that a trial takes; the others are for one of its runs."""

Effect = Callable[[JobView, JobView], bool]
"""Returns whether the signal had its effect, from the job's state before and after."""


async def send_and_wait(
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
        check_job_is_no_trial(before, f"takes no signal {signal}")
    kind = "trial" if before.kind == TRIAL else "job"
    if before.closed:
        closed = f"{kind} {job_id} is closed ({before.status_word}); it takes no signals"
        if signal in ("rewind", "tell") and not before.status.get("project"):
            closed += f"; `starter.py fork {job_id}` begins another job from its end, or with"
            closed += " --phase N from a phase of it"
        raise UserError(forgotten_notice(job_id) or closed)
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


def notices_after_signal(before: JobView, after: JobView) -> list[str]:
    """Return the new notices. The job keeps only the newest ones, so an index would not help."""
    return list((Counter(after.notices) - Counter(before.notices)).elements())


def _signal_recipient(signal: str, before: JobView, after: JobView) -> str:
    start = HANDED_ON.format(signal=signal)
    notices = [text for text in notices_after_signal(before, after) if text.startswith(start)]
    return notices[-1].removeprefix(start) if notices else ""


def pause_took_effect(before: JobView, after: JobView) -> bool:
    return (after.waiting or {}).get("reason") == "paused"


def resume_took_effect(before: JobView, after: JobView) -> bool:
    # A job that is not waiting refuses with a notice; another person's rewind may have resumed it.
    refused = any(
        text.startswith(f"{REFUSED}signal resume: ") for text in notices_after_signal(before, after)
    )
    if after.kind == TRIAL:
        return not refused and not after.waiting and not _stopped_runs(after)
    if after.live and before.status.get("pausing") and not after.status.get("pausing"):
        # The pause was withdrawn before it took effect.
        return not refused and not pause_took_effect(after, after)
    # A paused job that now waits for something else, such as an approval, has continued.
    going = (
        pause_took_effect(before, before) and not pause_took_effect(after, after)
    ) or not after.waiting
    was_waiting = after.live and bool(before.waiting)
    return was_waiting and going and not refused and not rewind_took_effect(before, after)


def _stopped_runs(job_view: JobView) -> list[str]:
    """Return the runs of a trial that resume lets go on."""
    runs = job_view.status.get("runs") or []
    not_resumed = ("", "clarification", "approval", "budget")
    return [
        run["job"]
        for run in runs
        if run["status"] == "running" and run["waiting"] not in not_resumed
    ]


def cancel_took_effect(before: JobView, after: JobView) -> bool:
    return after.closed


def limit_effect(payload: dict[str, Any]) -> Effect:
    """Return an effect: the job's limits equal the requested ones."""

    def has_limits(before: JobView, after: JobView) -> bool:
        if after.kind == TRIAL:
            new = (after.status.get("start") or {}).get("limits") or {}
            return after.live and all(new.get(key) == value for key, value in payload.items())
        scope_name = "project" if after.status.get("project") else "job"
        expected = [(scope_name, key, value) for key, value in payload.items() if key != "phase"]
        expected += [("phase", key, value) for key, value in payload.get("phase", {}).items()]
        limits = after.status.get("limits") or {}
        actual = [limits.get(scope, {}).get(key, {}).get("limit") for scope, key, _ in expected]
        return after.live and actual == [value for _, _, value in expected]

    return has_limits


def bypass_effect(guard: str) -> Effect:
    """Return an effect: the job confirmed the bypass, which may already be used up."""

    def is_answered(before: JobView, after: JobView) -> bool:
        phrase = f" let through once what {guard} refused at "
        return after.live and any(phrase in text for text in notices_after_signal(before, after))

    return is_answered


def tell_took_effect(before: JobView, after: JobView) -> bool:
    if after.status.get("project"):
        return any(text.startswith("told ") for text in notices_after_signal(before, after))

    def remarks_of(job_view: JobView) -> list[str]:
        return list(job_view.status.get("remarks") or [])

    return after.live and remarks_of(after) != remarks_of(before)


def rewind_took_effect(before: JobView, after: JobView) -> bool:
    def rewind_count(job_view: JobView) -> int:
        return int(job_view.status.get("rewinds") or 0)

    return after.live and rewind_count(after) > rewind_count(before)


def answer_took_effect(before: JobView, after: JobView) -> bool:
    return after.live and question_ids_by_signal(before) != question_ids_by_signal(after)


def question_ids_by_signal(job_view: JobView) -> dict[str, str]:
    """Return the ids of open questions by the signals that answer them."""
    question = (job_view.status.get("clarification") or {}).get("pending") or {}
    approval = job_view.status.get("approval") or {}
    ids = {}
    if question and question.get("answer") is None:
        ids["answer"] = str(question["id"])
    if approval and approval.get("approved") is None:
        ids |= dict.fromkeys(("approve", "deny"), str(approval["id"]))
    return ids
