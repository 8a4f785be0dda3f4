"""When a worker takes another activity: while its loop has time for it.

What is taken must be heard of within seconds. Nearly all activities of a worker wait for a model
and cost nothing meanwhile, so it takes many; but when those of hundreds of jobs begin or end at
once, the loop gets to them late, the server gives them up, and their second attempts come on top.
"""

from __future__ import annotations

import asyncio
import threading
import time

from temporalio.worker import (
    CustomSlotSupplier,
    SlotMarkUsedContext,
    SlotPermit,
    SlotReleaseContext,
    SlotReserveContext,
)

AT_ONCE = 16
"""So many are taken without looking: their own work cannot make the loop late for long."""
PAUSE_SECONDS = 0.01
LATE_SECONDS = 0.1


class ResponsiveSlotSupplier(CustomSlotSupplier):
    """Up to `slots` activities; beyond a few, only while the loop wakes when it is meant to."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._used_slots = 0
        self._lock = threading.Lock()  # the SDK gives back slots from threads of its own

    async def reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit:
        while (permit := self._take_slot(AT_ONCE)) is None:
            started = time.monotonic()
            await asyncio.sleep(PAUSE_SECONDS)
            in_time = time.monotonic() - started < PAUSE_SECONDS + LATE_SECONDS
            if in_time and (permit := self._take_slot(self._slots)):
                break
        return permit

    def try_reserve_slot(self, ctx: SlotReserveContext) -> SlotPermit | None:
        return self._take_slot(AT_ONCE)

    def mark_slot_used(self, ctx: SlotMarkUsedContext) -> None:
        """Taken is taken."""

    def release_slot(self, ctx: SlotReleaseContext) -> None:
        with self._lock:
            self._used_slots -= 1

    def _take_slot(self, most: int) -> SlotPermit | None:
        with self._lock:
            if self._used_slots >= most:
                return None
            self._used_slots += 1
            return SlotPermit()
