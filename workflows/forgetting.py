"""The workflow that deletes a job named by a person, or, by schedule, the jobs that are due."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from protocol.payload_reading import InvalidPayload, read_payload_object
from protocol.requests import LOST_WORKERS, ForgetRequest, ForgetResult
from workflows.runtime.activity_calls import HEARTBEAT

ATTEMPTS = 4 + LOST_WORKERS


@workflow.defn(name="Forget")
class ForgetWorkflow:
    """Deletes what closed jobs left. Input: {"job": "…"}, or nothing for the jobs that are due."""

    @workflow.run
    async def run(self, *payload: Any) -> dict[str, Any]:
        """Return the deleted jobs, and what remains."""
        try:
            request = read_payload_object(ForgetRequest, payload[0] if payload else {}, "forget")
        except InvalidPayload as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        result: ForgetResult = await workflow.execute_activity(
            "forget",
            request,
            result_type=ForgetResult,
            start_to_close_timeout=timedelta(minutes=30),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
            summary=f"forget {request.job[:100] or 'what is due'}",
        )
        return result.model_dump()
