"""Schedules on the server that start our own workflows, and those of the digests."""

import asyncio
import logging
import re
from typing import Any

from temporalio import client as temporal
from temporalio.service import RPCError

from config.agent_files import digest_times
from config.schema.notifications import digest_time

log = logging.getLogger("longhaul.schedules")


async def upsert_schedule(
    client: temporal.Client,
    name: str,
    workflow: str,
    spec: temporal.ScheduleSpec,
    queue: str,
    *args: Any,
) -> None:
    """Create or update the schedule. A run that is still in progress is not started again."""
    schedule = temporal.Schedule(
        action=temporal.ScheduleActionStartWorkflow(workflow, args=args, id=name, task_queue=queue),
        spec=spec,
    )
    try:
        await client.create_schedule(name, schedule)
    except temporal.ScheduleAlreadyRunningError:
        handle = client.get_schedule_handle(name)
        await handle.update(lambda _: temporal.ScheduleUpdate(schedule=schedule))


async def schedule_digests(client: temporal.Client, queue: str) -> None:
    """Make the schedules of this task queue's digests those that the configuration has.

    A worker that cannot do so serves jobs all the same; the next one that starts tries again.
    """
    prefix = f"longhaul-digest/{queue}/"
    wanted = {
        prefix + re.sub(r"[^A-Za-z0-9]+", "-", digest): digest
        for digest in await asyncio.to_thread(digest_times)
    }
    try:
        for name, digest in wanted.items():
            hour, minute, zone = digest_time(digest)
            calendar = temporal.ScheduleCalendarSpec(
                hour=[temporal.ScheduleRange(hour)], minute=[temporal.ScheduleRange(minute)]
            )
            spec = temporal.ScheduleSpec(calendars=[calendar], time_zone_name=zone)
            await upsert_schedule(client, name, "Digest", spec, queue, {"digest": digest})
        async for entry in await client.list_schedules():
            if entry.id.startswith(prefix) and entry.id not in wanted:
                await client.get_schedule_handle(entry.id).delete()
    except RPCError as error:
        log.warning("the digests are not scheduled: %s", error.message)
