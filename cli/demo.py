"""The demo: server, worker and a real job in one process."""

import asyncio
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from activities.checkpoints import Root
from activities.commands.sandbox import find_bwrap, sandbox_problem
from activities.model.providers import describe_provider
from cli.jobs.outline_text import job_outcome_lines
from cli.jobs.watch import follow_on_console
from cli.output import FAILED, OK, err_console, print_json, print_note, print_result, result_console
from cli.start.job_input import job_input
from cli.start.job_start import new_job_id, start_job
from config.agent_files import load_agent
from engine import logs
from engine.development import DevelopmentServer, development_server
from engine.exit_codes import INTERRUPTED
from engine.program_names import KEEP_DEMO, name_running_program
from engine.root_location import open_workspaces_root, workspaces_root
from engine.service import build_worker
from engine.web_ui import DEFAULT_UI, job_web_ui_link
from protocol.outline import wait_line

PORT, UI_PORT = 7233, 8233
DOCUMENT = Path(__file__).parent.parent / "examples" / "documents" / "records-policy.md"
DEFAULT_AGENT, MENDER = "creator", "mender"
MENDING = DOCUMENT.parent.parent / "mending"
INSTRUCTIONS = "Extract every requirement that the document sets."
LEAVING_SECONDS = 3.0


@dataclass(frozen=True)
class DemoJob:
    id: str
    data: dict[str, Any]
    workspace: Path


@dataclass
class DemoProgress:
    started: bool = False
    code: int | None = None
    """Exit code, once the job has ended."""


async def run_demo(agent: str, document: Path | None, *, keep: bool, json: bool) -> int:
    """Run the demo and return its exit code.

    Args:
        document: Document the job works on; None for the shipped one.
        keep: Whether server and worker keep running afterwards, until Ctrl-C.
        json: Whether to print the result as JSON.

    Raises:
        UserError: Unknown agent or missing document.
        SetupError: The workspaces root cannot be used, or the embedded server does not start.
    """
    # The demo's worker logs in this process, with redaction like any other worker.
    logs.set_up_logging("ERROR", force=True)
    root = open_workspaces_root(workspaces_root())
    jobs = [_demo_job(root, agent, document)]
    if agent == DEFAULT_AGENT and document is None and not json:
        jobs += [] if sandbox_problem(find_bwrap()) else [_demo_job(root, MENDER, None)]
    job_id = jobs[0].id
    database = root.path / ".longhaul" / "temporal.db"
    interrupted, progress = _demo_interrupt_event(), DemoProgress()

    async def show_demo() -> int:
        async with development_server(port=PORT, ui_port=UI_PORT, database=database) as running:
            _print_demo_addresses(running, database, describe_provider(load_agent(agent).model))
            # The next worker repeats a step that Ctrl-C interrupted, so do not wait for steps.
            async with build_worker(
                running.client, root=root, grace=timedelta(seconds=1), quick=True
            ):
                codes = [
                    await _run_demo_job(running, job, progress, keep=keep, json=json)
                    for job in jobs
                ]
                progress.code = max(codes)
                if keep:
                    sys.stdout.flush()  # otherwise a pipe gets the result only at the very end
                    print_note(f"server, worker and Web UI {running.ui} stay up until Ctrl-C")
                    await interrupted.wait()
                else:
                    print_note(f"look again, also at earlier jobs: `{KEEP_DEMO}`")
                return progress.code

    showing = asyncio.create_task(show_demo())
    waiting = asyncio.create_task(interrupted.wait())
    await asyncio.wait((showing, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if not interrupted.is_set():
        return await showing
    if progress.code is None:
        goes_on = f"job {job_id} goes on with `{KEEP_DEMO}`"
        print_note(f"interrupted; {goes_on if progress.started else 'no job was started'}")
        showing.cancel()
    await _wait_for_demo_shutdown(showing)
    return INTERRUPTED if progress.code is None else progress.code


def _demo_job(root: Root, agent: str, document: Path | None) -> DemoJob:
    """Return the job of an agent: on a document, or on the small repository with a bug."""
    job_id = new_job_id(agent)
    if agent == MENDER:
        issue = f"@{MENDING / 'issue.md'}"
        data = job_input(agent, issue, [], [], [], {"folder": str(MENDING)})
    else:
        data = job_input(agent, INSTRUCTIONS, [str(document or DOCUMENT)], [], [])
    return DemoJob(job_id, data, root.workspace(job_id))


def _demo_interrupt_event() -> asyncio.Event:
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    return interrupted


async def _wait_for_demo_shutdown(showing: asyncio.Task[int]) -> None:
    """Wait a few seconds at most for server and worker to end, ignoring their errors.

    The server is in the terminal's process group, so the same Ctrl-C ends it, and a worker that has
    just started would keep trying to reach it.
    """
    with suppress(TimeoutError):
        await asyncio.wait_for(asyncio.gather(showing, return_exceptions=True), LEAVING_SECONDS)


def _print_demo_addresses(running: DevelopmentServer, database: Path, model: str) -> None:
    print_note(f"model    {model}")
    print_note(f"Web UI   {running.ui}")
    print_note(f"server   {running.address}, data in {database}")
    if running.address != f"127.0.0.1:{PORT}":
        print_note(
            f"         port {PORT} is taken: other commands need TEMPORAL_ADDRESS={running.address}"
        )
    if running.ui != DEFAULT_UI:
        print_note(
            f"         port {UI_PORT} is taken: their links need TEMPORAL_UI_ADDRESS={running.ui}"
        )


async def _run_demo_job(
    running: DevelopmentServer, job: DemoJob, progress: DemoProgress, *, keep: bool, json: bool
) -> int:
    await start_job(running.client, job.id, job.data)
    progress.started = True
    link = job_web_ui_link(job.id, base=running.ui)
    print_note(f"job      {job.id}  {link}")
    screen = err_console() if json else result_console()
    # Without --keep the server ends with this process, so nobody could answer a waiting job.
    job_view = await follow_on_console(screen, running.client, job.id, until_waiting=not keep)
    workspace = job.workspace
    outputs = sorted(str(path) for path in (workspace / "output").rglob("*") if path.is_file())
    if json:
        print_json(
            {
                **job_view.status.model_dump(mode="json"),
                "link": link,
                "workspace": str(workspace),
                "output": outputs,
            }
        )
    else:
        for line in job_outcome_lines(job_view.status):
            print_result(line)
        if waiting := job_view.status.waiting:
            print_result(name_running_program(wait_line(waiting)))
        print_result(f"workspace {workspace}")
        for path in outputs:
            print_result(f"  {path}")
    return OK if job_view.status.status == "completed" else FAILED
