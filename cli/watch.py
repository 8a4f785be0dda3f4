"""Following a job until it ends: a live view on a terminal, else a line per change."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Protocol

from rich.console import Console
from rich.live import Live
from temporalio.client import Client

from cli import view
from cli.events import last_events
from cli.jobs import Seen, look
from cli.output import dump_line

INTERVAL_SECONDS = 0.5


class Screen(Protocol):
    """Where a watched job is shown."""

    async def show(self, client: Client, seen: Seen) -> None: ...


class Lines:
    """A line per change: for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.last = ""

    async def show(self, client: Client, seen: Seen) -> None:
        line = view.line(seen.status, seen.waiting)
        if not seen.live and not seen.closed:
            line += f" ({seen.silence}: last state on record)"
        if line != self.last:
            self.console.print(line, markup=False)
            self.last = line


class JsonLines:
    """A JSON object per change: for programs."""

    def __init__(self) -> None:
        self.last: object = None

    async def show(self, client: Client, seen: Seen) -> None:
        if seen.status != self.last:
            dump_line(seen.status)
            self.last = seen.status


class LiveScreen:
    """The view that repaints itself. A context: enter it before showing."""

    def __init__(self, console: Console) -> None:
        self.live = Live(console=console, auto_refresh=False, vertical_overflow="crop")

    def __enter__(self) -> LiveScreen:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    async def show(self, client: Client, seen: Seen) -> None:
        picture = view.screen(
            seen.status,
            seen.waiting,
            running_for=view.elapsed(seen.started, seen.ended or datetime.now(UTC)),
            events=await last_events(client, seen.id),
            pending=seen.pending,
            silence="" if seen.closed else seen.silence,
        )
        self.live.update(picture, refresh=True)


async def follow(
    client: Client, job_id: str, screen: Screen, *, until_waiting: bool = False
) -> Seen:
    """Show the job until it is closed.

    Args:
        until_waiting: Return also when the job waits for a person.

    Raises:
        Mistake: there is no such job.
    """
    while True:
        seen = await look(client, job_id)
        await screen.show(client, seen)
        if seen.closed or (until_waiting and seen.waiting):
            return seen
        await asyncio.sleep(INTERVAL_SECONDS)


async def follow_on(console: Console, client: Client, job_id: str, **options: bool) -> Seen:
    """`follow` in the way that suits the console."""
    if not console.is_terminal:
        return await follow(client, job_id, Lines(console), **options)
    with LiveScreen(console) as screen:
        return await follow(client, job_id, screen, **options)
