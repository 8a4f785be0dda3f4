"""A job's Temporal history as a stream of what happened, over all runs of its chain.

Pages of events are read one after the other and forgotten; what is kept is the caller's business.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

MOST_RUNS = 10_000
LOCAL_ACTIVITY = "core_local_activity"
"""Name that the SDK gives the markers of local activities."""


@dataclass(frozen=True)
class Done:
    """An activity that gave a result."""

    at: datetime
    activity: str
    story: str
    """Its line for people: `phase 2 · todo 3 · write_file notes/a.md`."""
    result: dict[str, Any]
    attempt: int = 1


@dataclass(frozen=True)
class Standing:
    """From here on the job shows this status: `running`, or `waiting: budget`."""

    at: datetime
    status: str


Happened = Done | Standing


@dataclass(frozen=True)
class Chain:
    """The runs of a job, oldest first."""

    runs: list[str]
    whole: bool
    """Whether the first run is among them: the server forgets closed runs after a while."""


async def chain(client: Client, job_id: str, newest: str) -> Chain:
    """The runs that led to the newest one; what a reset left aside is none of them."""
    runs: list[str] = []
    before = newest
    while before and len(runs) < MOST_RUNS:
        handle = client.get_workflow_handle(job_id, run_id=before)
        try:
            first = await anext(aiter(handle.fetch_history_events(page_size=1)))
        except RPCError as error:
            if error.status != RPCStatusCode.NOT_FOUND:
                raise
            break
        runs.append(before)
        before = first.workflow_execution_started_event_attributes.continued_execution_run_id
    return Chain(runs[::-1], whole=not before)


async def happened(client: Client, job_id: str, runs: list[str]) -> AsyncIterator[Happened]:
    """What happened in these runs, in order."""
    for run in runs:
        events = client.get_workflow_handle(job_id, run_id=run).fetch_history_events()
        async for one in read(events, client.data_converter):
            yield one


async def read(
    events: AsyncIterable[HistoryEvent], converter: DataConverter
) -> AsyncIterator[Happened]:
    """What the events of one run tell."""
    begun: dict[int, tuple[str, str]] = {}
    attempts: dict[int, int] = {}
    async for event in events:
        at = event.event_time.ToDatetime(tzinfo=UTC)
        match event.WhichOneof("attributes"):
            case "activity_task_scheduled_event_attributes":
                name = event.activity_task_scheduled_event_attributes.activity_type.name
                begun[event.event_id] = (name, await _story(event, converter))
            case "activity_task_started_event_attributes":
                started = event.activity_task_started_event_attributes
                attempts[started.scheduled_event_id] = started.attempt
            case "activity_task_completed_event_attributes":
                ended = event.activity_task_completed_event_attributes
                # A reset copies events of another run, whose beginnings are in this one as well.
                name, story = begun.pop(ended.scheduled_event_id, ("", ""))
                attempt = attempts.pop(ended.scheduled_event_id, 1)
                result = await _value(list(ended.result.payloads), converter)
                yield Done(at, name, story, result, attempt)
            case "marker_recorded_event_attributes":
                marker = event.marker_recorded_event_attributes
                if marker.marker_name != LOCAL_ACTIVITY or "result" not in marker.details:
                    continue
                about = await _value(list(marker.details["data"].payloads), converter)
                result = await _value(list(marker.details["result"].payloads), converter)
                name, attempt = str(about.get("activity_type")), int(about.get("attempt") or 1)
                yield Done(at, name, await _story(event, converter), result, attempt)
            case "workflow_properties_modified_event_attributes":
                memo = event.workflow_properties_modified_event_attributes.upserted_memo
                if "status" in memo.fields:
                    [status] = await converter.decode([memo.fields["status"]])
                    yield Standing(at, str(status))


async def _story(event: HistoryEvent, converter: DataConverter) -> str:
    if not event.user_metadata.HasField("summary"):
        return ""
    [told] = await converter.decode([event.user_metadata.summary])
    return str(told)


async def _value(payloads: list[Payload], converter: DataConverter) -> dict[str, Any]:
    if not payloads:
        return {}
    [value] = await converter.decode(payloads[:1])
    return value if isinstance(value, dict) else {}
