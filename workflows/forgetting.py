"""Forgetting as a workflow: one job that a person names, or by schedule those whose time is up."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import RetryPolicy
from temporalio.exceptions import ApplicationError

from protocol.forgetting import Forget, Forgotten
from protocol.payloads import Refused, read
from protocol.requests import LOST_WORKERS
from workflows.activity_calls import HEARTBEAT

ATTEMPTS = 4 + LOST_WORKERS


@workflow.defn(name="Forget")
class Forgetting:
    """Removes what closed jobs left. Input: {"job": "…"}, or nothing for those that are due."""

    @workflow.run
    async def run(self, *given: Any) -> dict[str, Any]:
        """Its result names the jobs that were forgotten, and what stays."""
        try:
            asked = read(Forget, given[0] if given else {}, "forget")
        except Refused as refusal:
            raise ApplicationError(str(refusal), type="BadStart", non_retryable=True) from None
        done: Forgotten = await workflow.execute_activity(
            "forget",
            asked,
            result_type=Forgotten,
            start_to_close_timeout=timedelta(minutes=30),
            heartbeat_timeout=HEARTBEAT,
            retry_policy=RetryPolicy(maximum_attempts=ATTEMPTS),
            summary=f"forget {asked.job[:100] or 'what is due'}",
        )
        return done.model_dump()
