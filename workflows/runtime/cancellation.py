"""Cancelling a job or project, by a signal or through Temporal."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import is_cancelled_exception

from protocol.errors import Interruption
from protocol.job_record import JobRecord
from protocol.project_record import ProjectRecord
from workflows.runtime import wait_states
from workflows.runtime.activity_failures import StepFailed
from workflows.runtime.inbox import Inbox

T = TypeVar("T")
_BY_WORKFLOW = "Cancel requested by workflow with run id "


class CancelRequested(Interruption):
    """A person sent the signal `cancel`."""


@dataclass(frozen=True)
class Cancellation:
    """Why a job is cancelled."""

    reason: str
    by_signal: bool
    """True if the server has not been asked to cancel yet: it only knows its own cancellations."""


def read_cancellation(error: BaseException) -> Cancellation:
    """Return the cancellation that an exception represents; re-raise any other exception."""
    if isinstance(error, CancelRequested):
        return Cancellation(str(error), by_signal=True)
    if is_cancelled_exception(error):
        reason = workflow.cancellation_reason() or ""
        if reason.startswith(_BY_WORKFLOW):
            # A workflow's own words come after those of the server.
            reason = reason.partition(" with reason: ")[2]
        text = "cancelled through Temporal" + (f": {reason}" if reason else "")
        return Cancellation(text, by_signal=False)
    raise error


async def finish_cancellation(
    record: JobRecord | ProjectRecord,
    inbox: Inbox,
    cancellation: Cancellation,
    *,
    close: Callable[[], Awaitable[None]],
    publish: Callable[[], Awaitable[None]],
) -> None:
    """Write the result of a cancelled job or project, and wait for the server to know of it.

    After a signal, `close` asks the server to cancel as its last act. If closing fails, wait for a
    person: any signal retries, and a cancellation through Temporal ends the run without a result.

    Args:
        record: Shows as waiting while closing fails.
        inbox: Signals of the job or project.
        cancellation: The reason for the end.
        close: Writes the result.
        publish: Publishes the current status.
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
            record.waiting = wait_states.closing_failure_wait(failed)
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


async def run_despite_cancellation(step: Coroutine[Any, Any, T]) -> T:
    """Run a step to its end even if a cancellation arrives meanwhile."""
    task = asyncio.create_task(step)
    with suppress(asyncio.CancelledError):
        await asyncio.shield(task)
    return await task


def is_cancelled() -> bool:
    """Whether the server was asked to cancel this run."""
    return workflow.cancellation_reason() is not None
