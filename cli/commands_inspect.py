"""Commands that look: list, show, files, log, doctor."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import doctor as checks
from cli import view
from cli.jobs import Seen, listed, look
from cli.options import Job, Json
from cli.output import FAILED, OK, dump, note, run, say
from engine.connection import connect

if TYPE_CHECKING:
    from activities.checkpoints import Checkpoints

COLUMNS = ("job_id", "agent", "status", "phase", "title", "started")


def list_(
    limit: Annotated[int, typer.Option(min=1, help="How many, newest first.")] = 50,
    json: Json = False,
) -> int:
    """List jobs, newest first. Needs no worker."""

    async def fetch() -> list[dict[str, Any]]:
        return await listed(await connect(), limit)

    jobs = run(fetch())
    if json:
        dump(jobs)
        return OK
    if not jobs:
        note("no jobs yet; `starter.py start AGENT --instructions …` starts one")
        return OK
    for line in view.columns(jobs, COLUMNS):
        say(line)
    return OK


def show(job: Job, json: Json = False) -> int:
    """Show how a job stands: phase, todos, usage, what it waits for; closed, its result.

    Without a worker the last state on record is shown, and said to be that.
    """

    async def fetch() -> Seen:
        return await look(await connect(), job)

    seen = run(fetch())
    if not seen.live:
        note("no worker answers; this is the last state on record")
    if json:
        dump({**seen.status, "live": seen.live})
    else:
        lines = view.sheet(seen.status, seen.waiting)
        for line in [*lines, *(view.outcome(seen.status) if seen.closed else [])]:
            say(line)
        say(f"running for {view.elapsed(seen.started, seen.ended or datetime.now(UTC))}")
    return OK


def files(
    job: Job,
    path: Annotated[str, typer.Argument(help="A file to print or a folder to list.")] = "",
    at: Annotated[
        int | None, typer.Option(help="As they were at the start of this phase.", metavar="PHASE")
    ] = None,
    json: Json = False,
) -> int:
    """List or print a job's files, now or at the start of any phase."""
    from cli import inspecting  # noqa: PLC0415 - loads the activities, which takes a second

    commit, store = _checkpoint(job, at)
    found = inspecting.listing(inspecting.files_at(store, commit), path)
    if isinstance(found, bytes):
        if json:
            dump({"path": path, "commit": commit, "content": found.decode("utf-8", "replace")})
        elif sys.stdout.isatty():
            say(found.decode("utf-8", "replace").rstrip("\n"))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(found)
    elif json:
        dump({"commit": commit, "files": [inspecting.entry_data(entry) for entry in found]})
    else:
        for entry in found:
            end = "/" if entry.kind == "folder" else ""
            say(f"{entry.size:>10,}  {entry.path}{end}")
    return OK


def log(job: Job, json: Json = False) -> int:
    """Tell a job's story: each step that changed anything, oldest first."""
    from cli import inspecting  # noqa: PLC0415 - loads the activities, which takes a second

    commit, store = _checkpoint(job, None)
    story = inspecting.story(store, commit)
    if json:
        dump([{"id": step.id, "at": step.at, "message": step.message.strip()} for step in story])
        return OK
    for step in story:
        when = datetime.fromtimestamp(step.at, UTC).astimezone()
        first = step.message.strip().partition("\n")[0]
        say(f"{step.id[:8]}  {when:%Y-%m-%d %H:%M:%S}  {first}")
    return OK


def doctor(json: Json = False) -> int:
    """Check everything a job needs; says what to do about what is wrong."""

    async def examine() -> list[checks.Check]:
        found = []
        async for check in checks.examine():
            found.append(check)
            if not json:
                say(check.line())
        return found

    found = run(examine())
    if json:
        dump([check.data() for check in found])
    return OK if all(check.ok for check in found) else FAILED


def _checkpoint(job: str, phase: int | None) -> tuple[str, Checkpoints]:
    from cli import inspecting  # noqa: PLC0415 - loads the activities, which takes a second

    async def fetch() -> inspecting.Places:
        return await inspecting.places(await connect(), job)

    found = run(fetch())
    store = inspecting.repository(job)
    return inspecting.commit_at(found, store, phase), store


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command("list")(list_)
    for command in (show, files, log, doctor):
        app.command()(command)
