"""Follows a job until it ends: a live view on a terminal, else a line per change."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Protocol

from rich.console import Console
from rich.live import Live
from temporalio.api.common.v1 import WorkflowExecution as ExecutionId
from temporalio.api.history.v1 import HistoryEvent
from temporalio.api.workflowservice.v1 import GetWorkflowExecutionHistoryReverseRequest
from temporalio.client import Client

from cli.jobs.job_view import JobView, view_job
from cli.jobs.outline_text import job_status_line, render_live_view, status_outline
from cli.output import print_json_line, print_note

INTERVAL_SECONDS = 0.5
QUERY_SECONDS = 5.0
"""A job in whose history nothing happens is asked for its status again after so long: each query is
work for the worker, and an Action of Temporal Cloud."""


class Screen(Protocol):
    """Shows a watched job."""

    async def show(self, client: Client, job_view: JobView) -> None: ...


class LineScreen:
    """Prints a line per change, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.last = ""

    async def show(self, client: Client, job_view: JobView) -> None:
        line = job_status_line(job_view.status)
        if not job_view.live and not job_view.closed:
            line += f" ({job_view.silence}: last state on record)"
        if line != self.last:
            self.console.print(line, markup=False)
            self.last = line


class JsonScreen:
    """Prints a JSON object per change, for programs."""

    def __init__(self) -> None:
        self.last: object = None

    async def show(self, client: Client, job_view: JobView) -> None:
        # How long a call has been under way changes all the time.
        state = job_view.status.model_dump(exclude={"under_way", "retrying"})
        if state != self.last:
            print_json_line(job_view.status.model_dump(mode="json"))
            self.last = state


class LiveScreen:
    """A view that repaints itself. A context manager: enter it before showing."""

    def __init__(self, console: Console) -> None:
        self.live = Live(console=console, auto_refresh=False, vertical_overflow="crop")
        self._steps: list[tuple[datetime, str]] = []
        self._place = ("", 0)
        """The run, and the number of events in it, at which the steps were read."""

    def __enter__(self) -> "LiveScreen":
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    async def show(self, client: Client, job_view: JobView) -> None:
        if self._place != (place := (job_view.run_id, job_view.events)):
            self._steps, self._place = await fetch_recent_steps(client, job_view.id), place
        picture = render_live_view(
            status_outline(job_view.status),
            running_for=job_view.elapsed_text(datetime.now(UTC)),
            events=self._steps,
            silence="" if job_view.closed else job_view.silence,
        )
        self.live.update(picture, refresh=True)


async def follow_job(
    client: Client, job_id: str, screen: Screen, *, until_waiting: bool = False
) -> JobView:
    """Show the job until it is closed.

    Args:
        until_waiting: Return also when the job waits for a person.

    Raises:
        UserError: There is no such job.
    """
    loop, known, queried_at = asyncio.get_running_loop(), None, 0.0
    while True:
        if loop.time() - queried_at >= QUERY_SECONDS:
            known, queried_at = None, loop.time()
        known = job_view = await view_job(client, job_id, known=known)
        await screen.show(client, job_view)
        if job_view.closed or (until_waiting and job_view.status.waiting):
            return job_view
        await asyncio.sleep(INTERVAL_SECONDS)


async def follow_on_console(
    console: Console, client: Client, job_id: str, **options: bool
) -> JobView:
    """Run `follow_job` with the screen that suits the console."""
    if not console.is_terminal:
        return await follow_job(client, job_id, LineScreen(console), **options)
    with LiveScreen(console) as screen:
        return await follow_job(client, job_id, screen, **options)


@contextmanager
def noting_interrupt(job_id: str) -> Iterator[None]:
    """After Ctrl-C, say that the job is not affected by it."""
    try:
        yield
    except asyncio.CancelledError:
        print_note(f"no longer watched; {job_id} goes on")
        raise


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
