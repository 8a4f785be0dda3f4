"""Temporal schedules that start jobs and projects again and again."""

import asyncio
from collections.abc import Container, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from temporalio import client as temporal
from temporalio.service import RPCError, RPCStatusCode

from cli.jobs.job_memo import JOB, PROJECT
from cli.output import UserError
from cli.schedules.service_schedules import parse_schedule_interval, schedule_interval_text
from engine.connection import connect_client, task_queue

TRIGGER_SECONDS = 5.0
"""How long to wait for what comes of a trigger."""


Change = Literal["pause", "unpause", "trigger", "delete"]


@dataclass(frozen=True)
class RecurringStart:
    """A schedule that starts jobs or projects."""

    schedule: str
    starts: str
    """`Job` or `Project`."""
    every: str
    state: str
    """`active` or `paused`."""
    next: str
    """Next start as ISO 8601 in UTC; empty if paused."""
    last: str
    """Id of the newest job it started."""


async def create_recurring_start(
    name: str, kind: str, data: dict[str, Any], every: str
) -> datetime:
    """Start a job with this input at an interval; each job's id consists of the name and a time.

    A job is skipped while the previous one is running.

    Returns:
        The time of the first start.

    Raises:
        UserError: The interval is invalid, or the name is in use.
    """
    interval = parse_schedule_interval(every, "--every", "")
    client = await connect_client()
    schedule = temporal.Schedule(
        # The server appends the time to the id.
        action=temporal.ScheduleActionStartWorkflow(kind, data, id=name, task_queue=task_queue()),
        spec=temporal.ScheduleSpec(intervals=[temporal.ScheduleIntervalSpec(every=interval)]),
        policy=temporal.SchedulePolicy(overlap=temporal.ScheduleOverlapPolicy.SKIP),
    )
    try:
        handle = await client.create_schedule(name, schedule)
    except temporal.ScheduleAlreadyRunningError:
        raise UserError(
            f"there is a schedule {name} already; `starter.py schedules remove {name}` removes it, "
            "or choose another --id"
        ) from None
    return (await handle.describe()).info.next_action_times[0]


async def list_recurring_starts() -> list[RecurringStart]:
    """Return the schedules that start jobs and projects, by name."""
    client = await connect_client()
    entries = [
        _recurring_start(entry, starts)
        async for entry in await client.list_schedules()
        if (starts := _scheduled_workflow(entry)) in (JOB, PROJECT)
    ]
    return sorted(entries, key=lambda entry: entry.schedule)


def _scheduled_workflow(entry: temporal.ScheduleListDescription) -> str:
    action = entry.schedule.action if entry.schedule else None
    return action.workflow if isinstance(action, temporal.ScheduleListActionStartWorkflow) else ""


def _recurring_start(entry: temporal.ScheduleListDescription, starts: str) -> RecurringStart:
    schedule, info = entry.schedule, entry.info
    paused = bool(schedule and schedule.state.paused)
    intervals = schedule.spec.intervals if schedule else []
    due = info.next_action_times if info and not paused else []
    actions = schedule_started_jobs(info.recent_actions if info else [])
    return RecurringStart(
        schedule=entry.id,
        starts=starts,
        every=", ".join(schedule_interval_text(interval.every) for interval in intervals),
        state="paused" if paused else "active",
        next=f"{due[0]:%Y-%m-%dT%H:%M:%SZ}" if due else "",
        last=actions[-1] if actions else "",
    )


async def change_recurring_start(name: str, change: Change) -> str:
    """Pause, resume, trigger or delete a schedule of jobs.

    Returns:
        What came of a trigger: `started NAME-2026-03-01T09:00:00Z`; empty if that is not known yet,
        and for other changes.

    Raises:
        UserError: There is no schedule of this name.
    """
    client = await connect_client()
    handle = client.get_schedule_handle(name)
    unknown = UserError(f"there is no schedule {name!r}; `starter.py schedules list` shows them")
    try:
        before = await handle.describe()
        if not schedule_starts_workflow(before, (JOB, PROJECT)):
            # Other commands manage the schedules for learning and forgetting.
            raise unknown
        await getattr(handle, change)()
    except RPCError as error:
        if error.status != RPCStatusCode.NOT_FOUND:
            raise
        raise unknown from None
    return await _recurring_trigger_outcome(handle, before.info) if change == "trigger" else ""


async def _recurring_trigger_outcome(
    handle: temporal.ScheduleHandle, before: temporal.ScheduleInfo
) -> str:
    """Wait until the server has started a job or skipped it; return which, or empty."""
    loop = asyncio.get_running_loop()
    end = loop.time() + TRIGGER_SECONDS
    while loop.time() < end:
        info = (await handle.describe()).info
        if info.num_actions_skipped_overlap > before.num_actions_skipped_overlap:
            running = ", ".join(schedule_started_jobs(info.running_actions)) or "its last job"
            return f"skipped, because {running} is still running"
        if info.num_actions > before.num_actions and (
            jobs := schedule_started_jobs(info.recent_actions)
        ):
            return f"started {jobs[-1]}"
        await asyncio.sleep(0.1)
    return ""


def schedule_starts_workflow(
    description: temporal.ScheduleDescription, kinds: Container[str]
) -> bool:
    """Return whether a schedule starts a workflow of one of these types."""
    action = description.schedule.action
    return isinstance(action, temporal.ScheduleActionStartWorkflow) and action.workflow in kinds


def schedule_started_jobs(
    actions: Iterable[temporal.ScheduleActionResult | temporal.ScheduleActionExecution],
) -> list[str]:
    """Return the ids of the jobs that a schedule's actions have started."""
    executions = (
        each.action if isinstance(each, temporal.ScheduleActionResult) else each for each in actions
    )
    return [
        execution.workflow_id
        for execution in executions
        if isinstance(execution, temporal.ScheduleActionExecutionStartWorkflow)
    ]


async def find_schedule_notice(client: temporal.Client, name: str, kinds: Container[str]) -> str:
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
