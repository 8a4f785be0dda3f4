"""Steering a running job: a signal, then a look at what it did."""

from __future__ import annotations

import asyncio
import getpass
import socket
from collections import Counter
from collections.abc import Callable
from typing import Any

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from cli.forgotten import forgotten
from cli.jobs import Seen, look
from cli.output import Mistake
from protocol.payloads import SIGNALS

PATIENCE_SECONDS = 10.0
"""How long to wait for a job to take a signal: it does so between steps."""

REFUSED = "refused: "
"""How a job's notice of a signal it did not take begins."""

HANDED_ON = "signal {signal}: handed on to job "
"""How a project's notice of a signal begins that it gave to one of its jobs."""
LACKS = "the folder may lack the last steps"
"""How a job's notice begins that its folder could not be brought up to date."""
MOST_BY = 100

Effect = Callable[[Seen, Seen], bool]
"""Whether the job, seen before and after, shows what the signal asked for."""


async def steer(
    client: Client, job_id: str, signal: str, payload: dict[str, Any], effect: Effect
) -> tuple[bool, Seen, str]:
    """Send a signal and wait for its effect, a visible refusal or the end of patience.

    Returns:
        Whether the effect was seen; the job as it was last seen; of a project, the job that it
        handed the signal on to.

    Raises:
        Mistake: no such job, a closed one, or the job refused the signal.
    """
    before = await look(client, job_id)
    if before.closed:
        closed = f"job {job_id} is closed ({before.word}); it takes no signals"
        if signal in ("rewind", "tell") and not before.status.get("project"):
            closed += f"; `starter.py fork {job_id}` begins another job from its end, or with"
            closed += " --phase N from a phase of it"
        raise Mistake(forgotten(job_id) or closed)
    try:
        sent = {**payload, "by": sender()}
        await client.get_workflow_handle(job_id).signal(signal, sent)
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise Mistake(f"job {job_id} closed just now; it takes no signals") from None
        raise
    loop = asyncio.get_running_loop()
    end = loop.time() + (PATIENCE_SECONDS if before.live else 0)
    while True:
        seen = await look(client, job_id, seconds=2)
        if seen.status.get("project") and SIGNALS[signal].for_one_job:
            if to := _handed_on(signal, before, seen):
                return True, seen, to
        elif effect(before, seen):
            return True, seen, ""
        # A job that was in a long step refuses what others have sent meanwhile at the same time.
        ours = f"{REFUSED}signal {signal}: "
        refused = [text for text in fresh_notices(before, seen) if text.startswith(ours)]
        if refused:
            raise Mistake(f"job {job_id} {refused[-1]}")
        if seen.closed or loop.time() >= end:
            return False, seen, ""
        await asyncio.sleep(0.2)


def sender() -> str:
    """Who types: `ada@host`, as far as the system knows."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):
        user = "somebody"
    return f"{user}@{socket.gethostname()}"[:MOST_BY]


def fresh_notices(before: Seen, after: Seen) -> list[str]:
    """Notices that were not there before. The job keeps the newest only, so no index helps."""
    return list((Counter(after.notices) - Counter(before.notices)).elements())


def _handed_on(signal: str, before: Seen, after: Seen) -> str:
    start = HANDED_ON.format(signal=signal)
    told = [text for text in fresh_notices(before, after) if text.startswith(start)]
    return told[-1].removeprefix(start) if told else ""


def paused(before: Seen, after: Seen) -> bool:
    return (after.waiting or {}).get("reason") == "paused"


def resumed(before: Seen, after: Seen) -> bool:
    # One that was not waiting refuses, and says so; another's rewind may have set it going.
    refused = any(
        text.startswith(f"{REFUSED}signal resume: ") for text in fresh_notices(before, after)
    )
    # What a paused job waits for next, such as an approval, it came to by going on.
    going = (paused(before, before) and not paused(after, after)) or not after.waiting
    asked = after.live and bool(before.waiting)
    return asked and going and not refused and not rewound(before, after)


def cancelled(before: Seen, after: Seen) -> bool:
    return after.closed


def limited(payload: dict[str, Any]) -> Effect:
    """Whether the limits are what was asked for."""

    def holds(before: Seen, after: Seen) -> bool:
        own = "project" if after.status.get("project") else "job"
        wanted = [(own, key, value) for key, value in payload.items() if key != "phase"]
        wanted += [("phase", key, value) for key, value in payload.get("phase", {}).items()]
        limits = after.status.get("limits") or {}
        found = [limits.get(scope, {}).get(key, {}).get("limit") for scope, key, _ in wanted]
        return after.live and found == [value for _, _, value in wanted]

    return holds


def bypassed(guard: str) -> Effect:
    """Whether the job says that it took the bypass; it may be used up by then."""

    def is_answered(before: Seen, after: Seen) -> bool:
        notices = fresh_notices(before, after)
        return after.live and f"bypass of {guard} once" in notices

    return is_answered


def heard(before: Seen, after: Seen) -> bool:
    if after.status.get("project"):
        return any(text.startswith("told ") for text in fresh_notices(before, after))

    def said(seen: Seen) -> list[str]:
        return list(seen.status.get("remarks") or [])

    return after.live and said(after) != said(before)


def rewound(before: Seen, after: Seen) -> bool:
    def count(seen: Seen) -> int:
        return int(seen.status.get("rewinds") or 0)

    return after.live and count(after) > count(before)


def answered(before: Seen, after: Seen) -> bool:
    return after.live and open_ids(before) != open_ids(after)


def open_ids(seen: Seen) -> dict[str, str]:
    """Ids of what the job asks people, by the signals that answer it."""
    question = (seen.status.get("clarification") or {}).get("pending") or {}
    approval = seen.status.get("approval") or {}
    found = {}
    if question and question.get("answer") is None:
        found["answer"] = str(question["id"])
    if approval and approval.get("approved") is None:
        found |= dict.fromkeys(("approve", "deny"), str(approval["id"]))
    return found
