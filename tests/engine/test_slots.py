"""A worker takes another activity only while its event loop has time."""

import asyncio
import time
from typing import Any

import pytest
from temporalio.worker import SlotPermit

from engine.slots import AT_ONCE, ResponsiveSlotSupplier

NOTHING: Any = None


async def taken(supplier: ResponsiveSlotSupplier, most: int, seconds: float) -> int:
    """Return how many slots are given within this time, up to so many."""
    count = 0
    try:
        async with asyncio.timeout(seconds):
            while count < most:
                await supplier.reserve_slot(NOTHING)
                count += 1
    except TimeoutError:
        pass
    return count


async def test_a_loop_that_wakes_in_time_takes_as_many_as_there_are() -> None:
    most = AT_ONCE + 20
    supplier = ResponsiveSlotSupplier(most)
    assert await taken(supplier, most, 10) == most
    assert await taken(supplier, 1, 0.2) == 0


async def test_a_loop_that_is_late_takes_a_few_only() -> None:
    supplier = ResponsiveSlotSupplier(1000)

    async def busy() -> None:
        while True:
            time.sleep(0.2)  # noqa: ASYNC251 - what holds the loop up is the point
            await asyncio.sleep(0)

    working = asyncio.create_task(busy())
    try:
        assert await taken(supplier, 1000, 1) == AT_ONCE
    finally:
        working.cancel()


async def test_what_is_given_back_is_given_again() -> None:
    supplier = ResponsiveSlotSupplier(AT_ONCE)
    for _ in range(AT_ONCE):
        await supplier.reserve_slot(NOTHING)
    assert supplier.try_reserve_slot(NOTHING) is None
    supplier.release_slot(NOTHING)
    assert isinstance(supplier.try_reserve_slot(NOTHING), SlotPermit)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(supplier.reserve_slot(NOTHING), 0.2)
