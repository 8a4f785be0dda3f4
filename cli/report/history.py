"""Streams a job's Temporal history over all runs of its chain.

Events are read page by page and not kept.
"""

from collections.abc import AsyncIterable, AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.client import Client
from temporalio.converter import DataConverter
from temporalio.service import RPCError, RPCStatusCode

from protocol.step_summary import StepSummary
from protocol.waiting import read_status_value

MOST_RUNS = 10_000
LOCAL_ACTIVITY = "core_local_activity"
"""The SDK's name for markers of local activities."""


@dataclass(frozen=True)
class ActivityResult:
    """A completed activity."""

    finished_at: datetime
    activity: str
    phase: int
    """The phase that it belongs to; 0 for none."""
    result: dict[str, Any]
    attempt: int = 1

    @property
    def tool(self) -> str:
        """The tool of a call, whatever activity answered it."""
        return str(self.result.get("tool") or self.activity)


@dataclass(frozen=True)
class StatusChange:
    """The job's status from now on, and the reason if it waits."""

    changed_at: datetime
    status: str
    reason: str = ""


JobEvent = ActivityResult | StatusChange


@dataclass(frozen=True)
class RunChain:
    """The runs of a job, oldest first."""

    runs: list[str]
    complete: bool
    """Whether it reaches back to the first run: the server deletes closed runs after a while."""


async def find_history_runs(client: Client, job_id: str, newest: str) -> RunChain:
    """Return the runs that led to the newest one, without runs abandoned by a reset."""
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
    return RunChain(runs[::-1], complete=not before)


async def read_history_events(
    client: Client, job_id: str, runs: list[str]
) -> AsyncIterator[JobEvent]:
    """Yield the events of these runs in order."""
    for run in runs:
        events = client.get_workflow_handle(job_id, run_id=run).fetch_history_events()
        async for event in parse_history_events(events, client.data_converter):
            yield event


async def parse_history_events(
    events: AsyncIterable[HistoryEvent], converter: DataConverter
) -> AsyncIterator[JobEvent]:
    """Yield the relevant events of one run."""
    scheduled: dict[int, tuple[str, int]] = {}
    attempts: dict[int, int] = {}
    async for event in events:
        time = event.event_time.ToDatetime(tzinfo=UTC)
        match event.WhichOneof("attributes"):
            case "activity_task_scheduled_event_attributes":
                name = event.activity_task_scheduled_event_attributes.activity_type.name
                scheduled[event.event_id] = (name, await _read_phase(event, converter))
            case "activity_task_started_event_attributes":
                started = event.activity_task_started_event_attributes
                attempts[started.scheduled_event_id] = started.attempt
            case "activity_task_completed_event_attributes":
                ended = event.activity_task_completed_event_attributes
                # A reset copies events of the earlier run, including the matching schedule events.
                name, phase = scheduled.pop(ended.scheduled_event_id, ("", 0))
                attempt = attempts.pop(ended.scheduled_event_id, 1)
                result = await _decode_history_payload(list(ended.result.payloads), converter)
                yield ActivityResult(time, name, phase, result, attempt)
            case "marker_recorded_event_attributes":
                marker = event.marker_recorded_event_attributes
                if marker.marker_name != LOCAL_ACTIVITY or "result" not in marker.details:
                    continue
                about = await _decode_history_payload(
                    list(marker.details["data"].payloads), converter
                )
                result = await _decode_history_payload(
                    list(marker.details["result"].payloads), converter
                )
                name, attempt = str(about.get("activity_type")), int(about.get("attempt") or 1)
                phase = await _read_phase(event, converter)
                yield ActivityResult(time, name, phase, result, attempt)
            case "workflow_properties_modified_event_attributes":
                memo = event.workflow_properties_modified_event_attributes.upserted_memo
                if "status" in memo.fields:
                    [status] = await converter.decode([memo.fields["status"]])
                    yield StatusChange(time, *read_status_value(str(status)))


async def _read_phase(event: HistoryEvent, converter: DataConverter) -> int:
    if not event.user_metadata.HasField("summary"):
        return 0
    [text] = await converter.decode([event.user_metadata.summary])
    return StepSummary.read(str(text)).phase


async def _decode_history_payload(
    payloads: list[Payload], converter: DataConverter
) -> dict[str, Any]:
    if not payloads:
        return {}
    [value] = await converter.decode(payloads[:1])
    return value if isinstance(value, dict) else {}
