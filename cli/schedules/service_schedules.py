"""Schedules of our own workflows, which learn and forget."""

from datetime import timedelta

from temporalio.client import Client, ScheduleIntervalSpec, ScheduleSpec
from temporalio.service import RPCError, RPCStatusCode

from cli.schedules.schedule_interval import OFF, parse_schedule_interval
from engine.connection import connect_client, task_queue
from engine.schedules import upsert_schedule


async def set_service_schedule(name: str, workflow: str, text: str) -> str:
    """Schedule a workflow at an interval on this environment's task queue, or stop it.

    Returns:
        The resulting state, in one line.

    Raises:
        UserError: The text is neither an interval nor `off`.
    """
    often = None if text == OFF else parse_schedule_interval(text)
    client = await connect_client()
    if often:
        await upsert_service_schedule(client, name, workflow, often, task_queue())
        return f"{name}: every {text}"
    try:
        await client.get_schedule_handle(name).delete()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
    return f"{name}: {OFF}"


async def upsert_service_schedule(
    client: Client, name: str, workflow: str, often: timedelta, queue: str
) -> None:
    """Create or update the schedule. A run that is still in progress is not started again."""
    spec = ScheduleSpec(intervals=[ScheduleIntervalSpec(every=often)])
    await upsert_schedule(client, name, workflow, spec, queue)
