"""Heartbeats of work in a thread."""

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
    beat_seconds,
    check_attempt_by_heartbeat,
    heartbeats,
    set_heartbeat_details,
)


@pytest.mark.parametrize(("after", "seconds"), [(20, 12), (5, 1), (None, 1)])
async def test_heartbeats_are_as_rare_as_the_time_out_allows(
    after: int | None, seconds: float
) -> None:
    environment = ActivityEnvironment()
    environment.info = replace(
        environment.info, heartbeat_timeout=timedelta(seconds=after) if after else None
    )

    async def attempt() -> float:
        return beat_seconds()

    assert await environment.run(attempt) == seconds


@pytest.mark.parametrize("attempt", [1, 2])
async def test_a_retry_says_at_once_that_a_reply_comes_in(attempt: int) -> None:
    sent: list[tuple[str, ...]] = []
    environment = ActivityEnvironment()
    environment.info = replace(environment.info, attempt=attempt)
    environment.on_heartbeat = lambda *details: sent.append(details)

    async def receive() -> None:
        async with heartbeats():
            set_heartbeat_details("receiving")
            set_heartbeat_details("receiving")
            set_heartbeat_details()

    await environment.run(receive)
    assert sent == [("receiving",)] * (attempt - 1)


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
