"""Heartbeats while an activity works: a lost worker or a cancellation shows within seconds.

That an attempt has a time limit keeps a heartbeat from hiding one that hangs.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from temporalio import activity

SECONDS = 1.0


@asynccontextmanager
async def heartbeats() -> AsyncIterator[None]:
    """For `async def` activities.

    The start counts as the first heartbeat: work that ends within a second sends none, each of
    which is a request to the server and a write there.
    """

    async def beat() -> None:
        while True:
            await asyncio.sleep(SECONDS)
            activity.heartbeat()

    beating = asyncio.create_task(beat())
    try:
        yield
    finally:
        beating.cancel()
        with suppress(asyncio.CancelledError):
            await beating


@contextmanager
def heartbeats_from_thread() -> Iterator[None]:
    """For activities that run in a thread; local ones, which need none, get none."""
    if activity.info().is_local:
        yield
        return
    done = threading.Event()
    context = contextvars.copy_context()

    def beat() -> None:
        while not done.wait(SECONDS):
            activity.heartbeat()

    thread = threading.Thread(target=context.run, args=(beat,), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
