"""Temporal schedules that start our own workflows."""

from __future__ import annotations

from datetime import timedelta

from temporalio.client import (
    Client,
    Schedule,
    ScheduleActionStartWorkflow,
    ScheduleAlreadyRunningError,
    ScheduleIntervalSpec,
    ScheduleSpec,
    ScheduleUpdate,
)
from temporalio.service import RPCError, RPCStatusCode

from cli.output import UserError
from engine.connection import connect_client, task_queue

OFF = "off"
UNITS = {"m": 60, "h": 3600, "d": 86_400}
DIGITS = 5
"""Maximum digits of a number: a longer one may exceed what a schedule or timedelta can hold."""


def parse_interval(text: str) -> timedelta:
    """Parse an interval such as 6h. Raises UserError."""
    number, unit = text[:-1], text[-1:]
    known = number.isdecimal() and len(number) <= DIGITS and unit in UNITS
    if not known or int(number) == 0:
        raise UserError(f"--schedule: found {text!r}, expected such as 30m, 6h or 1d, or {OFF}")
    return timedelta(seconds=int(number) * UNITS[unit])


async def set_schedule(name: str, workflow: str, text: str) -> str:
    """Schedule a workflow at an interval on this environment's task queue, or stop it.

    Returns:
        The resulting state, in one line.

    Raises:
        UserError: The text is neither an interval nor `off`.
    """
    often = None if text == OFF else parse_interval(text)
    client = await connect_client()
    if often:
        await upsert_schedule(client, name, workflow, often, task_queue())
        return f"{name}: every {text}"
    try:
        await client.get_schedule_handle(name).delete()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
    return f"{name}: {OFF}"


async def upsert_schedule(
    client: Client, name: str, workflow: str, often: timedelta, queue: str
) -> None:
    """Create or update the schedule. A run that is still in progress is not started again."""
    schedule_spec = Schedule(
        action=ScheduleActionStartWorkflow(workflow, id=name, task_queue=queue),
        spec=ScheduleSpec(intervals=[ScheduleIntervalSpec(every=often)]),
    )
    try:
        await client.create_schedule(name, schedule_spec)
    except ScheduleAlreadyRunningError:
        handle = client.get_schedule_handle(name)
        await handle.update(lambda _: ScheduleUpdate(schedule=schedule_spec))
