"""Intervals as people type them, and schedules of our own workflows, which learn and forget."""

from datetime import timedelta

from temporalio.client import Client, ScheduleIntervalSpec, ScheduleSpec
from temporalio.service import RPCError, RPCStatusCode

from cli.output import UserError
from engine.connection import connect_client, task_queue
from engine.schedules import upsert_schedule

OFF = "off"
UNITS = {"m": 60, "h": 3600, "d": 86_400}
DIGITS = 5
"""Maximum digits of a number: a longer one may exceed what a schedule or timedelta can hold."""


def parse_schedule_interval(
    text: str, option: str = "--schedule", also: str = f", or {OFF}"
) -> timedelta:
    """Parse an interval such as `1d`. Raises UserError, which names the option.

    Args:
        also: Other values that the option accepts, for the message.
    """
    number, unit = text[:-1], text[-1:]
    known = number.isdecimal() and len(number) <= DIGITS and unit in UNITS
    if not known or int(number) == 0:
        raise UserError(f"{option}: found {text!r}, expected such as 30m, 6h or 1d{also}")
    return timedelta(seconds=int(number) * UNITS[unit])


def schedule_interval_text(every: timedelta) -> str:
    """Format an interval as typed: `1d`, `90m`."""
    seconds = int(every.total_seconds())
    for unit, length in reversed(UNITS.items()):
        if seconds % length == 0:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


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
