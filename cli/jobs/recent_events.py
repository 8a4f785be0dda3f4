"""The end of a job's Temporal history."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from temporalio.api.common.v1 import WorkflowExecution as ExecutionId
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

_STEPS = (
    "activity_task_scheduled_event_attributes",
    "marker_recorded_event_attributes",
    "timer_started_event_attributes",
)
"""Events of a step: regular activity, local activity, durable timer."""


async def fetch_recent_events(client: Client, job_id: str, limit: int) -> Sequence[HistoryEvent]:
    """Return the end of the job's history, newest first."""
    page = await client.workflow_service.get_workflow_execution_history_reverse(
        GetWorkflowExecutionHistoryReverseRequest(
            namespace=client.namespace,
            execution=ExecutionId(workflow_id=job_id),
            maximum_page_size=limit,
        )
    )
    return page.history.events


async def fetch_recent_steps(
    client: Client, job_id: str, limit: int = 6
) -> list[tuple[datetime, str]]:
    """Return times and one-line summaries of the job's newest steps, oldest first."""
    events: list[tuple[datetime, str]] = []
    for event in await fetch_recent_events(client, job_id, 60):
        # Later events of a step repeat its summary.
        begins = event.WhichOneof("attributes") in _STEPS
        if begins and event.user_metadata.HasField("summary") and len(events) < limit:
            decoded = await client.data_converter.decode([event.user_metadata.summary])
            events.append((event.event_time.ToDatetime(tzinfo=UTC), str(decoded[0])))
    return events[::-1]
