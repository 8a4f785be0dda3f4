"""What is known of a schedule: the workflows that it starts, and those that it has started."""

from __future__ import annotations

from collections.abc import Container, Iterable

from temporalio.client import (
    Client,
    ScheduleActionExecution,
    ScheduleActionExecutionStartWorkflow,
    ScheduleActionResult,
    ScheduleActionStartWorkflow,
    ScheduleDescription,
)
from temporalio.service import RPCError


def schedule_starts_workflow(description: ScheduleDescription, kinds: Container[str]) -> bool:
    """Return whether a schedule starts a workflow of one of these types."""
    action = description.schedule.action
    return isinstance(action, ScheduleActionStartWorkflow) and action.workflow in kinds


def schedule_started_jobs(
    actions: Iterable[ScheduleActionResult | ScheduleActionExecution],
) -> list[str]:
    """Return the ids of the jobs that a schedule's actions have started."""
    executions = (
        each.action if isinstance(each, ScheduleActionResult) else each for each in actions
    )
    return [
        execution.workflow_id
        for execution in executions
        if isinstance(execution, ScheduleActionExecutionStartWorkflow)
    ]


async def find_schedule_notice(client: Client, name: str, kinds: Container[str]) -> str:
    """Return that a name is that of a schedule, and its newest job; empty if it is not."""
    try:
        description = await client.get_schedule_handle(name).describe()
    except RPCError:
        return ""
    if not schedule_starts_workflow(description, kinds):
        return ""
    jobs = schedule_started_jobs(description.info.recent_actions)
    newest = f"its newest job is {jobs[-1]}" if jobs else "it has started no job yet"
    return f"{name} is a schedule, which `starter.py schedules` pauses and removes; {newest}"
