"""How a job or project ends when it is cancelled, by a signal or through Temporal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from protocol.errors import Interruption
from protocol.project import ProjectRecord
from protocol.record import JobRecord
from workflows import activity_failures
from workflows.activity_failures import StepFailed
from workflows.inbox import Inbox

T = TypeVar("T")


class CancelRequested(Interruption):
    """A person sent the signal `cancel`."""


@dataclass(frozen=True)
class Cancellation:
    """Why a job is cancelled."""

    reason: str
    by_signal: bool
    """Whether the server still has to be asked: it knows only of its own cancellations."""


def read_cancellation(error: BaseException) -> Cancellation:
    """The cancellation that an exception stands for. Raises the exception if it is none."""
    if isinstance(error, CancelRequested):
        return Cancellation(str(error), by_signal=True)
    if is_cancelled_exception(error):
        return Cancellation("cancelled through Temporal", by_signal=False)
    raise error


async def finish_cancellation(
    record: JobRecord | ProjectRecord,
    inbox: Inbox,
    cancellation: Cancellation,
    *,
    close: Callable[[], Awaitable[None]],
    publish: Callable[[], Awaitable[None]],
) -> None:
    """Write the result of what was cancelled, and wait until the server knows of it as well.

    After a signal closing itself asks the server, as its last act. Where closing fails a person is
    waited for: any signal tries again, and Temporal's own cancellation ends it without a result.

    Args:
        record: The job's or project's, which shows as waiting while closing fails.
        inbox: Its signals.
        cancellation: Why it ends.
        close: Writes the result.
        publish: Shows how it stands.
    """
    while True:
        inbox.signals.clear()
        try:
            await close()
            break
        except StepFailed as failed:
            inbox.notice(f"the result is not written: {failed.message}")
            if not cancellation.by_signal or is_cancelled():
                break
            record.waiting = activity_failures.wait_for_closing(failed)
        await publish()
        with suppress(asyncio.CancelledError):
            await workflow.wait_condition(lambda: is_cancelled() or bool(inbox.signals))
        if is_cancelled():
            break
        record.waiting = None
        await publish()
    record.waiting = None
    await publish()
    if cancellation.by_signal:
        await workflow.wait_condition(is_cancelled)


async def run_shielded(step: Coroutine[Any, Any, T]) -> T:
    """Carry a step out although a cancellation may arrive before it ends."""
    task = asyncio.create_task(step)
    with suppress(asyncio.CancelledError):
        await asyncio.shield(task)
    return await task


def is_cancelled() -> bool:
    """Whether the server was asked to cancel this run."""
    return workflow.cancellation_reason() is not None
