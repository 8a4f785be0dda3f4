"""A slot supplier that accepts another activity only while the event loop is responsive.

An accepted activity must send a heartbeat within seconds. Nearly all activities wait for a model,
which costs nothing, so a worker accepts many. But when those of hundreds of jobs begin or end at
once, the loop is late, the server times them out, and their second attempts add to the load.
"""

import asyncio
import threading
import time

from temporalio import worker

AT_ONCE = 64
"""Activities accepted without a check: so few cannot delay the loop for long.

Only these start eagerly, with the workflow task that schedules them. Any other takes a detour over
the server's task queue, which costs the server a write and the worker a poll.
"""
PAUSE_SECONDS = 0.01
LATE_SECONDS = 0.1


class ResponsiveSlotSupplier(worker.CustomSlotSupplier):
    """Up to `slots` activities; beyond `AT_ONCE`, only while the loop wakes on time."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._used_slots = 0
        self._lock = threading.Lock()  # the SDK releases slots from its own threads

    async def reserve_slot(self, ctx: worker.SlotReserveContext) -> worker.SlotPermit:
        while (permit := self._take_slot(AT_ONCE)) is None:
            started = time.monotonic()
            await asyncio.sleep(PAUSE_SECONDS)
            in_time = time.monotonic() - started < PAUSE_SECONDS + LATE_SECONDS
            if in_time and (permit := self._take_slot(self._slots)):
                break
        return permit

    def try_reserve_slot(self, ctx: worker.SlotReserveContext) -> worker.SlotPermit | None:
        return self._take_slot(AT_ONCE)

    def mark_slot_used(self, ctx: worker.SlotMarkUsedContext) -> None:
        """Nothing to do: a reserved slot already counts."""

    def release_slot(self, ctx: worker.SlotReleaseContext) -> None:
        with self._lock:
            self._used_slots -= 1

    def _take_slot(self, most: int) -> worker.SlotPermit | None:
        with self._lock:
            if self._used_slots >= most:
                return None
            self._used_slots += 1
            return worker.SlotPermit()
