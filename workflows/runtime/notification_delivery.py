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
    LOST,
    NOTIFY,
    RECIPIENTS,
    Destination,
    LostNotification,
    Notification,
    Notifying,
    NotifyRequest,
    Sending,
    Sent,
)
from protocol.payload_reading import InvalidPayload, read_payload_object
from protocol.short_text import shorten_to_start
from workflows.runtime import activity_table as table
from workflows.runtime.activity_calls import ActivityCalls
from workflows.runtime.activity_failures import StepFailed

SUMMARY_CHARACTERS = 95
"""The server accepts 400 bytes."""
WHY_CHARACTERS = 300
"""Of a failure, in the memo."""


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
        if lost := [each for each in sent if isinstance(each, LostNotification)]:
            # The memo is for who looks later, the counter for who watches.
            workflow.upsert_memo({LOST: [each.model_dump() for each in lost]})
            _count_lost(request, len(lost))
            raise ApplicationError(
                "; ".join(each.why for each in lost), type="NotSent", non_retryable=True
            )
        return {"sent": [each.status for each in sent if isinstance(each, Sent)]}

    async def _send(
        self, notification: NotifyRequest, number: int, to: Destination
    ) -> Sent | LostNotification:
        request = Sending(notification=notification.notification, to=to, number=number)
        what = f"{notification.notification.event} to {to.title}"
        seconds = int(to.timeout) + 60
        try:
            return await self._calls.run_activity(
                table.SEND_NOTIFICATION, request, what, seconds=seconds
            )
        except StepFailed as failed:
            return LostNotification(
                to=to.title, why=shorten_to_start(failed.message, WHY_CHARACTERS)
            )


def _count_lost(request: NotifyRequest, count: int) -> None:
    labels = {"agent": request.notification.agent, "event": request.notification.event}
    counter = workflow.metric_meter().create_counter(
        "longhaul_notifications_lost", "Notifications that were given up, by recipient."
    )
    counter.add(count, {**labels, **({"team": request.team} if request.team else {})})


async def begin_notifications(
    due: Sequence[Notification], book: Notifying | None, notice: Callable[[str], None]
) -> None:
    """Start a workflow for each notification, with an id that can begin only once.

    The job neither waits for the delivery nor learns its outcome.
    """
    for each in due:
        recipients = [to for to in book.to if each.event in to.on] if book else []
        if book and recipients:
            request = NotifyRequest(notification=each, to=recipients, team=book.team)
            await asyncio.shield(_begin_notification(request, notice))


async def _begin_notification(request: NotifyRequest, notice: Callable[[str], None]) -> None:
    each = request.notification
    try:
        await workflow.start_child_workflow(
            "Notify",
            request.model_dump(exclude_defaults=True),
            id=f"{workflow.info().workflow_id}{NOTIFY}{each.key}",
            memo={RECIPIENTS: [to.title for to in request.to]},
            parent_close_policy=ParentClosePolicy.ABANDON,
            id_reuse_policy=WorkflowIDReusePolicy.REJECT_DUPLICATE,
            static_summary=f"{each.event}: {each.job}"[:SUMMARY_CHARACTERS],
        )
    except WorkflowAlreadyStartedError:
        return
    except FailureError as error:
        notice(f"nobody is called for {each.event}: {error}")
