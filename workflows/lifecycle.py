"""What a job and a project have in common: they go on until there is a result, or are cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import SearchAttributeKey, WorkflowIDReusePolicy
from temporalio.exceptions import (
    FailureError,
    WorkflowAlreadyStartedError,
    is_cancelled_exception,
)
from temporalio.workflow import ParentClosePolicy

from protocol.errors import Interruption
from protocol.notifications import Destination, Notification, Notifying, NotifyRequest
from protocol.payloads import check_decrypted
from protocol.project import ProjectRecord
from protocol.record import JobRecord
from workflows import activity_failures
from workflows.activity_failures import StepFailed
from workflows.signals import Signals

T = TypeVar("T")
Record = TypeVar("Record", JobRecord, ProjectRecord)

MOST_HISTORY = 10 << 20
"""Bytes. The server ends a run at five times that, which some dozens of the largest signals fill
long before there are many events."""
SUMMARY_CHARACTERS = 95
"""The server takes 400 bytes."""


class CancelRequested(Interruption):
    """A person sent the signal `cancel`."""


class Lifecycle(Signals):
    """The frame around the moves: results, cancellation, new runs, what people see."""

    _last_display: tuple[dict[str, str], dict[str, str]] = ({}, {})
    _started_at = ""
    """When the first run began, which the server forgets before the last one is closed."""

    async def _advance(self) -> None:
        """One move."""
        raise NotImplementedError

    async def _close_cancelled(self, reason: str, *, by_signal: bool) -> None:
        """Write down that it was cancelled; only the server can then close it so."""
        raise NotImplementedError

    async def _publish_status(self) -> None:
        """Show how it stands."""
        raise NotImplementedError

    async def _finish_cancellation(
        self,
        record: JobRecord | ProjectRecord,
        close: Callable[[], Awaitable[None]],
        *,
        by_signal: bool,
    ) -> None:
        """Close what was cancelled, and wait until the server was asked to cancel it as well.

        After a signal closing itself asks the server, as its last act. Where it fails a person is
        waited for: what is sent next lets it be tried again, and Temporal's own cancellation ends
        it without a result.
        """
        while True:
            self._inbox.signals.clear()
            try:
                await close()
                break
            except StepFailed as failed:
                self._inbox.notice(f"the result is not written: {failed.message}")
                if not by_signal or is_cancelled():
                    break
                record.waiting = activity_failures.wait_for_closing(failed)
            await self._publish_status()
            with suppress(asyncio.CancelledError):
                await workflow.wait_condition(lambda: is_cancelled() or bool(self._inbox.signals))
            if is_cancelled():
                break
            record.waiting = None
            await self._publish_status()
        record.waiting = None
        await self._publish_status()
        if by_signal:
            await workflow.wait_condition(is_cancelled)

    async def _run_until_result(self, record: JobRecord | ProjectRecord) -> dict[str, Any]:
        try:
            while (result := record.result) is None:
                await self._advance()
            if self._inbox.signals:
                for received in self._inbox.signals:
                    self._inbox.refuse(
                        f"signal {received.signal}: it came too late, the result was written"
                    )
                await self._publish_status()
            return result.model_dump()
        except CancelRequested as request:
            await self._close_cancelled(str(request), by_signal=True)
            raise asyncio.CancelledError from None
        except BaseException as error:
            if not is_cancelled_exception(error):
                raise
            await self._close_cancelled("cancelled through Temporal", by_signal=False)
            raise

    async def _call_people(self, due: Sequence[Notification], book: Notifying | None) -> None:
        """Have each notification sent by a workflow of its own, whose id can begin only once.

        What becomes of it, the job neither waits for nor hears.
        """
        for each in due:
            wanted = [to for to in book.to if each.event in to.on] if book else []
            if wanted:
                await asyncio.shield(self._begin_notification(each, wanted))

    async def _begin_notification(self, each: Notification, to: list[Destination]) -> None:
        try:
            await workflow.start_child_workflow(
                "Notify",
                NotifyRequest(notification=each, to=to).model_dump(exclude_defaults=True),
                id=f"{workflow.info().workflow_id}/notify/{each.key}",
                parent_close_policy=ParentClosePolicy.ABANDON,
                id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
                static_summary=f"{each.event}: {each.job}"[:SUMMARY_CHARACTERS],
            )
        except WorkflowAlreadyStartedError:
            return
        except FailureError as error:
            self._inbox.notice(f"nobody is called for {each.event}: {error}")

    def _restored_record(self, kind: type[Record], start: tuple[Any, ...]) -> Record | None:
        """The record that the run before this one handed over; None in the first run."""
        if not workflow.info().continued_run_id:
            self._started_at = workflow.info().workflow_start_time.isoformat(timespec="seconds")
            return None
        check_decrypted(start)
        record = kind.model_validate(start[0])
        self._started_at = record.started_at
        self._inbox.signals[:0] = record.inbox
        self._inbox.notices[:0] = record.notices
        return record

    def _is_long(self, record: JobRecord | ProjectRecord, events: int) -> bool:
        """Whether this run has so many events, or so many bytes, that a new one is due.

        Not while the record fits into no payload, which would fail the workflow task for ever. With
        its letters opened and its notes in the store it will; until then the run is longer.
        """
        info = workflow.info()
        record.inbox = self._inbox.signals
        return (
            info.get_current_history_length() >= events
            or info.get_current_history_size() >= MOST_HISTORY
        ) and record.fits

    def _continue_as_new(self, record: JobRecord | ProjectRecord) -> None:
        """Begin a new run with the same state."""
        record.inbox, record.notices = self._inbox.signals, self._inbox.notices
        record.started_at = self._started_at
        workflow.continue_as_new(args=[record.model_dump(mode="json", exclude_defaults=True)])

    def _update_display(
        self, details: str, memo: dict[str, str], attributes: dict[str, str]
    ) -> None:
        """Keep Temporal Web current; memo and attributes only when they change."""
        workflow.set_current_details(details)
        memo = {**memo, "began": self._started_at}
        if memo != self._last_display[0]:
            workflow.upsert_memo(memo)
        if attributes != self._last_display[1]:
            workflow.upsert_search_attributes(
                [SearchAttributeKey.for_keyword(k).value_set(v) for k, v in attributes.items()]
            )
        self._last_display = (memo, attributes)


async def run_shielded(step: Coroutine[Any, Any, T]) -> T:
    """Carry a step out although a cancellation may arrive before it ends."""
    task = asyncio.create_task(step)
    with suppress(asyncio.CancelledError):
        await asyncio.shield(task)
    return await task


def is_cancelled() -> bool:
    """Whether the server was asked to cancel this run."""
    return workflow.cancellation_reason() is not None
