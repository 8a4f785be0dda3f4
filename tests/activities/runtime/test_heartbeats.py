"""Heartbeats of work in a thread."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from unittest.mock import AsyncMock, Mock

import pytest
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import ActivityEnvironment

from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import (
    check_attempt_by_heartbeat,
    heartbeats,
    throttled_heartbeat,
)


def test_a_loop_that_asks_at_every_turn_sends_one_in_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Mock(monotonic=Mock(return_value=100.0))
    monkeypatch.setattr("activities.runtime.heartbeats.time", clock)
    sent: list[object] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: sent.append(details)

    def loop() -> None:
        beat = throttled_heartbeat()
        for turn in range(3000):
            clock.monotonic.return_value = 100.0 + turn / 1000
            beat()

    environment.run(loop)
    assert len(sent) == 3


async def test_a_thread_of_an_activity_that_sends_them_itself_sends_none() -> None:
    sent: list[object] = []
    environment = ActivityEnvironment()
    environment.on_heartbeat = lambda *details: sent.append(details)

    def beat_once() -> None:
        beat = throttled_heartbeat()
        beat()

    async def attempt() -> None:
        async with heartbeats():
            await asyncio.to_thread(beat_once)

    await environment.run(attempt)
    assert not sent


def late(heartbeat: AsyncMock) -> ActivityEnvironment:
    """Return an attempt that began a minute ago, and the server's answer to its heartbeat."""
    handle = Mock(heartbeat=heartbeat)
    environment = ActivityEnvironment(client=Mock(get_async_activity_handle=lambda **_: handle))
    environment.info = replace(
        environment.info,
        started_time=datetime.now(UTC) - timedelta(minutes=1),
        heartbeat_timeout=timedelta(seconds=5),
    )
    return environment


async def test_a_late_attempt_that_was_given_up_ends_at_once_and_without_alarm() -> None:
    not_found = RPCError("no such activity", RPCStatusCode.NOT_FOUND, b"")
    went_on = False

    async def attempt() -> None:
        nonlocal went_on
        with typed_failures():
            # As callers do that can continue without the model.
            with suppress(ApplicationError):
                await check_attempt_by_heartbeat()
            went_on = True

    with pytest.raises(ApplicationError) as caught:
        await late(AsyncMock(side_effect=not_found)).run(attempt)
    assert caught.value.category is ApplicationErrorCategory.BENIGN
    assert not went_on


async def test_a_late_attempt_that_is_still_wanted_goes_on() -> None:
    heartbeat = AsyncMock()
    await late(heartbeat).run(check_attempt_by_heartbeat)
    heartbeat.assert_awaited_once()
