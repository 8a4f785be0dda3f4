"""Heartbeats of activities, and checks that an attempt is still wanted.

Without a heartbeat for the time-out of the activity, its worker counts as lost. Attempts also have
a time limit, since heartbeats would hide one that hangs. Each heartbeat is a request to the server
and a write there, and one Action of Temporal Cloud, so they are as rare as the time-out allows.
"""

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError
from temporalio.service import RPCError, RPCStatusCode

from activities.runtime import tracing

SECONDS = 1.0
MARGIN_SECONDS = 8.0
"""A heartbeat is sent this long before it is due, if the time-out is that long: a busy worker may
be late."""
MANY = 100
"""Activities of one worker from which each sends half as many heartbeats, where they are frequent:
those of a hundred jobs would load the server more than their steps do."""
LATE_SECONDS = 2.0
ANSWER_SECONDS = 1.0
"""How long a thread waits for the server's response to a heartbeat, which takes milliseconds."""

_beating: set[int] = set()
_details: contextvars.ContextVar[list[str]] = contextvars.ContextVar("heartbeat details")


@asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """Send heartbeats from an `async def` activity, if it lasts until the first is due."""
    tracing.begin_activity_tracing()
    loop, seconds = asyncio.get_running_loop(), beat_seconds()
    timers: list[asyncio.TimerHandle] = []
    details: list[str] = []
    _details.set(details)

    def send_beat() -> None:
        pause = seconds if len(_beating) < MANY else max(seconds, 2 * SECONDS)
        timers[:] = [loop.call_later(pause, send_beat)]
        activity.heartbeat(*details)

    timers.append(loop.call_later(seconds, send_beat))
    _beating.add(id(timers))
    try:
        yield
    finally:
        _beating.remove(id(timers))
        timers[0].cancel()


def beat_seconds() -> float:
    timeout = activity.info().heartbeat_timeout
    return max(SECONDS, timeout.total_seconds() - MARGIN_SECONDS) if timeout else SECONDS


def set_heartbeat_details(*details: str) -> None:
    """Send these with further heartbeats of an `async def` activity; at once if it is a retry."""
    sent = _details.get(None)
    if sent is None or sent == [*details]:
        return
    sent[:] = details
    if details and activity.info().attempt > 1:
        activity.heartbeat(*details)


@contextmanager
def heartbeats_from_thread() -> Iterator[None]:
    """Send heartbeats for an activity in a thread; local activities need none."""
    if activity.info().is_local:
        yield
        return
    done = threading.Event()
    context, seconds = contextvars.copy_context(), beat_seconds()

    def send_beats() -> None:
        while not done.wait(seconds):
            activity.heartbeat()

    thread = threading.Thread(target=context.run, args=(send_beats,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class AttemptSuperseded(asyncio.CancelledError):
    """Another attempt has replaced this one. A CancelledError, so that no code on the way handles
    it as a failure."""


async def check_attempt_by_heartbeat() -> None:
    """Stop if this attempt was given up long ago; call it just before anything that costs money.

    A worker that was frozen wakes with several attempts that others have long finished, since the
    server filled its open polls. Only an attempt that gets here late asks the server. Raises
    AttemptSuperseded: Nobody waits for the result of this attempt.
    """
    info = activity.info()
    late = time.time() - info.started_time.timestamp() > LATE_SECONDS
    if info.heartbeat_timeout is None or not late:
        return
    handle = activity.client().get_async_activity_handle(task_token=info.task_token)
    try:
        await handle.heartbeat()
    except AsyncActivityCancelledError:
        return  # the SDK learns of it by itself, and ends the attempt as cancelled
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise AttemptSuperseded from None
        raise


def check_thread_by_heartbeat() -> None:
    """Like `check_attempt_by_heartbeat`, for a thread; call it just before an effect outside.

    An attempt that started less than the heartbeat timeout ago cannot have been given up, so only
    an older one sends a heartbeat and waits for the response. Raises CancelledError: Nobody waits
    for the result of this attempt.
    """
    if not activity.in_activity() or (patience := activity.info().heartbeat_timeout) is None:
        return
    if time.time() - activity.info().started_time.timestamp() > patience.total_seconds():
        activity.heartbeat()
        # The SDK cancels a thread whose heartbeat was rejected.
        activity.wait_for_cancelled_sync(ANSWER_SECONDS)
