"""Learning as a workflow, for a Temporal Schedule: one pass over the traces of all jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy

from protocol.learning import LearningResult
from workflows.activity_calls import HEARTBEAT

ATTEMPTS = 8
"""The schedule comes again; until then a store may be back."""


@workflow.defn(name="Learning")
class LearningWorkflow:
    """Makes proposals from traces, and moves guards as their figures say. No input."""

    @workflow.run
    async def run(self, *payload: Any) -> dict[str, Any]:
        """One pass; its result is a line for each thing that was done."""
        result: LearningResult = await workflow.execute_activity(
            "learn",
            result_type=LearningResult,
            start_to_close_timeout=timedelta(minutes=30),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
            summary="learn from traces",
        )
        return result.model_dump()
