"""Whether an attempt is alive, and whether it is still wanted.

Heartbeats while an activity works: a lost worker or a cancellation shows within seconds.

That an attempt has a time limit keeps a heartbeat from hiding one that hangs.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from temporalio import activity
from temporalio.client import AsyncActivityCancelledError
from temporalio.service import RPCError, RPCStatusCode

from activities.runtime import tracing

SECONDS = 1.0
MANY = 100
"""Activities of one worker from which on each sends half as many: a heartbeat is a write at the
server, and those of some hundred jobs would take it longer than the steps do."""
LATE_SECONDS = 2.0
ANSWER_SECONDS = 1.0
"""How long a thread waits for what the server says to a heartbeat, which takes milliseconds."""

_beating: set[int] = set()
"""The `async def` activities at work in this process."""


@asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """For `async def` activities.

    The start counts as the first heartbeat: work that ends within a second sends none, each of
    which is a request to the server and a write there.
    """
    tracing.begin_activity()
    loop = asyncio.get_running_loop()
    timers: list[asyncio.TimerHandle] = []

    def schedule_beat(seconds: float) -> None:
        timers[:] = [loop.call_later(seconds, send_beat)]

    def send_beat() -> None:
        schedule_beat(SECONDS if len(_beating) < MANY else 2 * SECONDS)
        activity.heartbeat()

    schedule_beat(SECONDS)
    _beating.add(id(timers))
    try:
        yield
    finally:
        _beating.remove(id(timers))
        timers[0].cancel()


def throttled_heartbeat() -> Callable[[], None]:
    """A heartbeat for loops in a thread, which may call it at every turn: one in a second goes out,
    since each is a trip to the event loop and back."""
    last = 0.0

    def send_beat() -> None:
        nonlocal last
        if (now := time.monotonic()) >= last + SECONDS:
            last = now
            activity.heartbeat()

    return send_beat


@contextmanager
def heartbeats_from_thread() -> Iterator[None]:
    """For activities that run in a thread; local ones, which need none, get none."""
    if activity.info().is_local:
        yield
        return
    done = threading.Event()
    context = contextvars.copy_context()

    def send_beats() -> None:
        while not done.wait(SECONDS):
            activity.heartbeat()

    thread = threading.Thread(target=context.run, args=(send_beats,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


class AttemptSuperseded(asyncio.CancelledError):
    """Another attempt has taken this one's place. Like a cancellation nothing on the way takes it
    for a failure to make do with."""


async def check_still_wanted() -> None:
    """Stop here if this attempt was given up long ago; for just before what costs money.

    A worker that was frozen wakes with attempts in hand that others have long since finished:
    several of them, since the server filled its open polls. Only an attempt that comes here late
    asks the server.

    Raises:
        AttemptSuperseded: nobody waits for the outcome of this attempt.
    """
    info = activity.info()
    late = time.time() - info.started_time.timestamp() > LATE_SECONDS
    if info.heartbeat_timeout is None or not late:
        return
    handle = activity.client().get_async_activity_handle(task_token=info.task_token)
    try:
        await handle.heartbeat()
    except AsyncActivityCancelledError:
        return  # the worker is told in its own way, and ends the attempt as cancelled
    except RPCError as error:
        if error.status == RPCStatusCode.NOT_FOUND:
            raise AttemptSuperseded from None
        raise


def check_wanted_in_thread() -> None:
    """The same in a thread, which has no client to ask with: for just before what reaches outside.

    An attempt from which the server has heard nothing for less than the heartbeat's time-out cannot
    have been given up; so only one that may have been sends a heartbeat and waits for the answer.

    Raises:
        CancelledError: nobody waits for the outcome of this attempt.
    """
    if not activity.in_activity() or (patience := activity.info().heartbeat_timeout) is None:
        return
    if time.time() - activity.info().started_time.timestamp() > patience.total_seconds():
        activity.heartbeat()
        # The SDK ends a thread whose heartbeat was refused.
        activity.wait_for_cancelled_sync(ANSWER_SECONDS)
