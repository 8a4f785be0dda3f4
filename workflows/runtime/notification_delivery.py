"""A notification as a workflow of its own, so that a job neither waits for its delivery nor ends
it.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from temporalio import workflow
from temporalio.common import WorkflowIDReusePolicy
from temporalio.exceptions import ApplicationError, FailureError, WorkflowAlreadyStartedError
from temporalio.workflow import ParentClosePolicy

from protocol.notification_requests import (
    Destination,
    Notification,
    Notifying,
    NotifyRequest,
    Sending,
    Sent,
)
from protocol.payload_reading import InvalidPayload, read_payload_object
from workflows.runtime import activity_table as table
from workflows.runtime.activity_calls import ActivityCalls
from workflows.runtime.activity_failures import StepFailed

SUMMARY_CHARACTERS = 95
"""The server accepts 400 bytes."""


@workflow.defn(name="Notify")
class Notify:
    """Sends one notification. Jobs and projects start it and do not wait for it."""

    def __init__(self) -> None:
        self._calls = ActivityCalls()

    @workflow.run
    async def run(self, *start: Any) -> dict[str, Any]:
        """Return the answer of each destination."""
        try:
            request = read_payload_object(NotifyRequest, start[0] if start else None, "notify")
        except InvalidPayload as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        sent = await asyncio.gather(
            *(self._send(request, number, to) for number, to in enumerate(request.to))
        )
        if lost := [each for each in sent if isinstance(each, str)]:
            raise ApplicationError("; ".join(lost), type="NotSent", non_retryable=True)
        return {"sent": [each.status for each in sent if isinstance(each, Sent)]}

    async def _send(self, notification: NotifyRequest, number: int, to: Destination) -> Sent | str:
        request = Sending(notification=notification.notification, to=to, number=number)
        what = f"{notification.notification.event} to {to.name or to.url_variable or 'the address'}"
        seconds = int(to.timeout) + 60
        try:
            return await self._calls.run_activity(
                table.SEND_NOTIFICATION, request, what, seconds=seconds
            )
        except StepFailed as failed:
            return failed.message


async def begin_notifications(
    due: Sequence[Notification], book: Notifying | None, notice: Callable[[str], None]
) -> None:
    """Start a workflow for each notification, with an id that can begin only once.

    The job neither waits for the delivery nor learns its outcome.
    """
    for each in due:
        recipients = [to for to in book.to if each.event in to.on] if book else []
        if recipients:
            await asyncio.shield(_begin_notification(each, recipients, notice))


async def _begin_notification(
    each: Notification, to: list[Destination], notice: Callable[[str], None]
) -> None:
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
        notice(f"nobody is called for {each.event}: {error}")
