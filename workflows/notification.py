"""A notification as a workflow of its own: a job neither waits for its delivery nor ends it."""

from __future__ import annotations

import asyncio
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ApplicationError

from protocol.notifications import Destination, NotifyRequest, Sending, Sent
from protocol.payloads import InvalidPayload, read_object
from workflows.activity_calls import ActivityCalls
from workflows.activity_failures import StepFailed

ATTEMPTS = 150
"""With at most ten minutes between two of them, about a day."""


@workflow.defn(name="Notify")
class Notify:
    """Sends one notification. Started by jobs and projects, and left to itself."""

    def __init__(self) -> None:
        self._calls = ActivityCalls()

    @workflow.run
    async def run(self, *given: Any) -> dict[str, Any]:
        """Its result says what each destination answered."""
        try:
            asked = read_object(NotifyRequest, given[0] if given else None, "notify")
        except InvalidPayload as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        sent = await asyncio.gather(
            *(self._send(asked, number, to) for number, to in enumerate(asked.to))
        )
        if lost := [each for each in sent if isinstance(each, str)]:
            raise ApplicationError("; ".join(lost), type="NotSent", non_retryable=True)
        return {"sent": [each.status for each in sent if isinstance(each, Sent)]}

    async def _send(self, asked: NotifyRequest, number: int, to: Destination) -> Sent | str:
        request = Sending(notification=asked.notification, to=to, number=number)
        what = f"{asked.notification.event} to {to.name or to.url_variable or 'the address'}"
        seconds = int(to.timeout) + 60
        try:
            return await self._calls.run_activity(
                "send_notification", request, Sent, what, seconds, ATTEMPTS
            )
        except StepFailed as failed:
            return failed.message
