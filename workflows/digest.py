"""The workflow of the daily digest, which a schedule on the server starts."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from protocol.digests import DigestMark, DigestReply, DigestRequest
from protocol.notification_requests import Notifying
from protocol.payload_reading import InvalidPayload, read_payload_object
from protocol.requests import LOST_WORKERS
from workflows.runtime.activity_calls import HEARTBEAT
from workflows.runtime.notification_delivery import begin_notifications

ATTEMPTS = 4 + LOST_WORKERS


@workflow.defn(name="Digest")
class DigestWorkflow:
    """Tells people what is done, what waits and what it cost. Input: {"digest": "08:00"}."""

    @workflow.run
    async def run(self, *payload: Any) -> dict[str, Any]:
        """Return where the digest ended, which the schedule hands to the next one."""
        try:
            request = read_payload_object(DigestRequest, payload[0] if payload else {}, "digest")
        except InvalidPayload as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        last = (
            workflow.get_last_completion_result(dict)
            if workflow.has_last_completion_result()
            else {}
        )
        request.since = DigestMark.model_validate(last)
        reply: DigestReply = await workflow.execute_activity(
            "digest",
            request,
            result_type=DigestReply,
            start_to_close_timeout=timedelta(minutes=30),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
            summary=f"digest of {request.digest[:60]}",
        )
        for message in reply.messages:
            book = Notifying(to=message.to)
            await begin_notifications([message.notification], book, workflow.logger.warning)
        return reply.mark.model_dump()
