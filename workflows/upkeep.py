"""The workflows that schedules on the server start: they learn, forget, and write the digest."""

from datetime import timedelta
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from protocol.data_model import Data
from protocol.digests import DigestMark, DigestReply, DigestRequest
from protocol.notification_requests import Notifying
from protocol.payload_reading import InvalidPayload, read_payload_object
from protocol.requests import LOST_WORKERS, ForgetRequest, ForgetResult
from protocol.trace_requests import LearningResult
from workflows.runtime.activity_calls import HEARTBEAT
from workflows.runtime.notification_delivery import begin_notifications

ATTEMPTS = 4 + LOST_WORKERS
LEARNING_ATTEMPTS = 8
"""The schedule repeats the pass; a store may be back by then."""

D = TypeVar("D", bound=Data)


@workflow.defn(name="Learning")
class LearningWorkflow:
    """Proposes guards from traces, and moves guards as their figures require. No input."""

    @workflow.run
    async def run(self, *payload: Any) -> dict[str, Any]:
        """Run one pass over the traces of all jobs; return a line for each action."""
        summary = "learn from traces"
        result = await _run_pass("learn", LearningResult, summary, attempts=LEARNING_ATTEMPTS)
        return result.model_dump()


@workflow.defn(name="Forget")
class ForgetWorkflow:
    """Deletes what closed jobs left. Input: {"job": "…"}, or nothing for the jobs that are due."""

    @workflow.run
    async def run(self, *payload: Any) -> dict[str, Any]:
        """Return the deleted jobs, and what remains."""
        request = _read_input(ForgetRequest, payload, "forget")
        summary = f"forget {request.job[:100] or 'what is due'}"
        return (await _run_pass("forget", ForgetResult, summary, request)).model_dump()


@workflow.defn(name="Digest")
class DigestWorkflow:
    """Tells people what is done, what waits and what it cost. Input: {"digest": "08:00"}."""

    @workflow.run
    async def run(self, *payload: Any) -> dict[str, Any]:
        """Return where the digest ended, which the schedule hands to the next one."""
        request = _read_input(DigestRequest, payload, "digest")
        if workflow.has_last_completion_result():
            request.since = DigestMark.model_validate(workflow.get_last_completion_result(dict))
        summary = f"digest of {request.digest[:60]}"
        reply = await _run_pass("digest", DigestReply, summary, request)
        for message in reply.messages:
            book = Notifying(to=message.to)
            await begin_notifications([message.notification], book, workflow.logger.warning)
        return reply.mark.model_dump()


def _read_input(form: type[D], payload: tuple[Any, ...], what: str) -> D:
    try:
        return read_payload_object(form, payload[0] if payload else {}, what)
    except InvalidPayload as refusal:
        raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None


async def _run_pass(
    activity: str, form: type[D], summary: str, *requests: Data, attempts: int = ATTEMPTS
) -> D:
    reply: D = await workflow.execute_activity(
        activity,
        args=requests,
        result_type=form,
        start_to_close_timeout=timedelta(minutes=30),
        heartbeat_timeout=HEARTBEAT,
        retry_policy=RetryPolicy(maximum_attempts=attempts),
        summary=summary,
    )
    return reply
