"""The workflow that learns, for a Temporal Schedule: one pass over the traces of all jobs."""

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

from protocol.trace_requests import LearningResult
from workflows.runtime.activity_calls import HEARTBEAT

ATTEMPTS = 8
"""The schedule repeats the pass; a store may be back by then."""


@workflow.defn(name="Learning")
class LearningWorkflow:
    """Proposes guards from traces, and moves guards as their figures require. No input."""

    @workflow.run
    async def run(self, *payload: Any) -> dict[str, Any]:
        """Run one pass; return a line for each action."""
        result: LearningResult = await workflow.execute_activity(
            "learn",
            result_type=LearningResult,
            start_to_close_timeout=timedelta(minutes=30),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
            summary="learn from traces",
        )
        return result.model_dump()
