"""The demo: server, worker and a real job in one process."""

from __future__ import annotations

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from cli import view
from cli.output import FAILED, OK, console, dump, err_console, note, say
from cli.starting import job_input, new_id, start
from cli.watch import follow_on
from engine import logs
from engine.connection import DEFAULT_UI, describe_endpoint, ui_link, workspaces_root
from engine.development import Server, server
from engine.process import INTERRUPTED
from engine.root import open_root
from engine.service import build_worker

PORT, UI_PORT = 7233, 8233
DOCUMENT = Path(__file__).parent.parent / "examples" / "documents" / "records-policy.md"
INSTRUCTIONS = "Extract every requirement that the document sets."
LEAVING_SECONDS = 3.0


@dataclass(frozen=True)
class Demonstrated:
    """The demo's job."""

    id: str
    data: dict[str, Any]
    workspace: Path


@dataclass
class Reached:
    """How far the demo got."""

    started: bool = False
    code: int | None = None
    """Once the job ended."""


async def demo(agent: str, document: Path | None, *, keep: bool, json: bool) -> int:
    """Run the demo; the exit code.

    Args:
        agent: Which agent the job gets.
        document: What the job works on; None takes the one that ships.
        keep: Whether server and worker stay up afterwards, until Ctrl-C.
        json: Whether to print the outcome as JSON.

    Raises:
        Mistake: unknown agent, missing document.
        Unusable: the workspaces root, or the embedded server does not start.
    """
    # The worker of the demo logs here, and what it logs needs what any worker's does.
    logs.set_up("ERROR", force=True)
    root = open_root(workspaces_root())
    data = job_input(agent, INSTRUCTIONS, [str(document or DOCUMENT)], [], [])
    job_id = new_id(agent)
    database = root.path / ".longhaul" / "temporal.db"
    interrupted, reached = _on_interrupt(), Reached()

    async def show() -> int:
        async with server(port=PORT, ui_port=UI_PORT, database=database) as running:
            _introduce(running, database)
            # A step cut short by Ctrl-C is done again by the next worker, so none is waited for.
            async with build_worker(running.client, root=root, grace=timedelta(seconds=1)):
                job = Demonstrated(job_id, data, root.workspace(job_id))
                reached.code = await _run(running, job, reached, keep=keep, json=json)
                if keep:
                    sys.stdout.flush()  # a pipe would have the result when all is over
                    note(f"server, worker and Web UI {running.ui} stay up until Ctrl-C")
                    await interrupted.wait()
                else:
                    note("look again, also at earlier jobs: `starter.py demo --keep`")
                return reached.code

    showing = asyncio.create_task(show())
    waiting = asyncio.create_task(interrupted.wait())
    await asyncio.wait((showing, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not interrupted.is_set():
        return await showing
    if reached.code is None:
        goes_on = f"job {job_id} goes on with `starter.py demo --keep`"
        note(f"interrupted; {goes_on if reached.started else 'no job was started'}")
        showing.cancel()
    await _let_end(showing)
    return INTERRUPTED if reached.code is None else reached.code


def _on_interrupt() -> asyncio.Event:
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    return interrupted


async def _let_end(showing: asyncio.Task[int]) -> None:
    """Let server and worker end, a few seconds at most, whatever they say to it.

    The server is in the terminal's process group: the same Ctrl-C ends it, and a worker that has
    just begun would ask for it for long.
    """
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(showing, return_exceptions=True), LEAVING_SECONDS)


def _introduce(running: Server, database: Path) -> None:
    note(f"model    {describe_endpoint()}")
    note(f"Web UI   {running.ui}")
    note(f"server   {running.address}, data in {database}")
    if running.address != f"127.0.0.1:{PORT}":
        note(
            f"         port {PORT} is taken: other commands need TEMPORAL_ADDRESS={running.address}"
        )
    if running.ui != DEFAULT_UI:
        note(f"         port {UI_PORT} is taken: their links need TEMPORAL_UI_ADDRESS={running.ui}")


async def _run(
    running: Server, job: Demonstrated, reached: Reached, *, keep: bool, json: bool
) -> int:
    await start(running.client, job.id, job.data)
    reached.started = True
    link = ui_link(job.id, base=running.ui)
    note(f"job      {job.id}  {link}")
    screen = err_console() if json else console()
    # Without --keep the server leaves with us: nobody could answer a job that waits.
    seen = await follow_on(screen, running.client, job.id, until_waiting=not keep)
    workspace = job.workspace
    made = sorted(str(path) for path in (workspace / "output").rglob("*") if path.is_file())
    if json:
        dump({**seen.status, "link": link, "workspace": str(workspace), "output": made})
    else:
        for line in view.outcome(seen.status):
            say(line)
        if seen.waiting:
            say(view.waits(seen.waiting))
        say(f"workspace {workspace}")
        for path in made:
            say(f"  {path}")
    return OK if seen.word == "completed" else FAILED
