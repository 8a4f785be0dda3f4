"""Commands that look: list, show, files, diff, log, doctor."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import doctor as checks
from cli import view
from cli.check import Check
from cli.forgotten import forgotten
from cli.jobs import Seen, listed, look
from cli.options import Job, Json
from cli.output import FAILED, OK, Mistake, dump, note, run, say
from engine.connection import connect

if TYPE_CHECKING:
    from activities.checkpoints import Checkpoints, LogEntry
    from cli.inspecting import Places

MOMENT = "The start of this phase, or `now`."
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

    Without a worker the last state on record is shown, and said to be that. --json prints the
    answer of the query `status` with `job_id`, `live` (whether a worker gave it) and `tree` added.
    """

    async def fetch() -> Seen:
        return await look(await connect(), job)

    seen = run(fetch())
    gone = forgotten(job) if seen.closed else None
    if not seen.live:
        note(f"{seen.silence}; this is the last state on record")
    if gone:
        note(gone)
    if json:
        told = seen.status | ({"forgotten": gone} if gone else {})
        dump({**told, **_standing(job, seen), "live": seen.live})
    else:
        lines = view.sheet(seen.status, seen.waiting)
        for line in [*lines, *(view.outcome(seen.status) if seen.closed else [])]:
            say(line)
        lasted = view.elapsed(seen.started, seen.ended or datetime.now(UTC))
        say(f"{'ran' if seen.ended else 'running'} for {lasted}")
    return OK


def _standing(job: str, seen: Seen) -> dict[str, str | None]:
    if seen.status.get("project"):
        return {}
    from cli import inspecting  # noqa: PLC0415 - takes a second

    return inspecting.standing(job, seen.status)


def files(
    job: Job,
    path: Annotated[str, typer.Argument(help="A file to print or a folder to list.")] = "",
    at: Annotated[str, typer.Option(help=MOMENT, metavar="PHASE|now")] = "now",
    state: Annotated[
        bool, typer.Option("--state", help="Of a project: its own files beside the product.")
    ] = False,
    json: Json = False,
) -> int:
    """List or print a job's files, now or at the start of any phase, undone ones included.

    Of a project: the files of its product as accepted so far.
    """
    from cli import inspecting  # noqa: PLC0415 - takes a second

    places = _places(job)
    if places.project is not None:
        return _files_of_project(job, path, at, state=state, json=json)
    if state:
        raise Mistake(f"{job} is a job; --state is for projects")
    [commit], store = _checkpoints(job, places, at)
    found = inspecting.listing(inspecting.files_at(store, commit), path)
    if isinstance(found, bytes):
        _print(found, path, commit, json=json)
    elif json:
        rows = [{"path": one.path, "kind": one.kind, "bytes": one.size} for one in found]
        dump({"commit": commit, "files": rows})
    else:
        for one in found:
            say(f"{one.size:>10,}  {one.path}{'/' if one.kind == 'folder' else ''}")
    return OK


def _print(found: bytes, path: str, commit: str, *, json: bool) -> None:
    """Print a file, as it is where it goes into another."""
    from cli import inspecting  # noqa: PLC0415 - takes a second

    if json:
        dump({"path": path, "commit": commit, **inspecting.content_data(found)})
    elif sys.stdout.isatty() and b"\0" in found:
        note(f"{path} is binary, {len(found):,} bytes; send it into a file to have it")
    elif sys.stdout.isatty():
        say(found.decode("utf-8", "replace").rstrip("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(found)


def _files_of_project(project: str, path: str, at: str, *, state: bool, json: bool) -> int:
    from cli import project_files  # noqa: PLC0415 - loads the activities

    if at != "now":
        raise Mistake(f"{project} is a project, which has no phases: leave --at out")
    held = project_files.repository(project)
    commit = project_files.tip(held, state=state)
    found = project_files.listing(held, commit, path)
    if isinstance(found, bytes):
        _print(found, path, commit, json=json)
    elif json:
        rows = [{"path": name, "kind": "file", "bytes": size} for name, size in found]
        dump({"commit": commit, "files": rows})
    else:
        for name, size in found:
            say(f"{size:>10,}  {name}")
    return OK


def diff(
    job: Job,
    before: Annotated[str, typer.Argument(help=MOMENT, metavar="PHASE|now")],
    after: Annotated[str, typer.Argument(help="The same.", metavar="PHASE|now")],
    path: Annotated[str, typer.Argument(help="Only this file, or what is in this folder.")] = "",
    stat: Annotated[bool, typer.Option("--stat", help="Names and sizes only.")] = False,
    json: Json = False,
) -> int:
    """Tell how a job's files differ between the starts of two phases, or a phase and now.

    What the system keeps (archive/, tools/ and the like) is listed last and by name only; with
    PATH its lines are shown as well.
    """
    from cli import differences, inspecting  # noqa: PLC0415 - loads the activities

    for moment in (before, after):
        inspecting.moment(moment)
    if (places := _places(job)).project is not None:
        raise Mistake(
            f"{job} is a project, whose files are a git repository: `starter.py show {job}` prints "
            "what to clone, and `starter.py log` its commits"
        )
    commits, store = _checkpoints(job, places, before, after)
    old, new = (inspecting.files_at(store, commit) for commit in commits)
    found = differences.differences(old, new, path)
    names = [text if text == "now" else f"phase {text}" for text in (before, after)]

    def text(one: differences.Difference) -> str | None:
        if stat or one.aside:
            return None
        return differences.unified(old, new, one, (names[0], names[1]), whole=bool(path))

    if json:
        dump({"commits": commits, "changes": [one.data(text(one)) for one in found]})
        return OK
    for one in found:
        say(one.line())
    for one in found:
        if lines := text(one):
            say(f"\n{one.change.path}: {lines}" if lines.startswith("binary") else f"\n{lines}")
    if not found:
        note("nothing differs")
    return OK


def log(job: Job, json: Json = False) -> int:
    """Tell a job's story: each step that changed anything, oldest first.

    Of a project: the commits of its product, one for each accepted piece of work.
    """
    from cli import inspecting, project_files  # noqa: PLC0415 - takes a second

    places = _places(job)
    steps: list[LogEntry] | list[project_files.Line]
    if places.project is not None:
        held = project_files.repository(job)
        steps = project_files.story(held, project_files.tip(held, state=False))
    else:
        [commit], store = _checkpoints(job, places, "now")
        steps = inspecting.story(store, commit)
        if store.breaks_off(steps[0].id):
            note("the steps before these are damaged or not in this store")
    if json:
        dump([{"id": step.id, "at": step.at, "message": step.message.strip()} for step in steps])
        return OK
    for step in steps:
        when = datetime.fromtimestamp(step.at, UTC).astimezone()
        first = step.message.strip().partition("\n")[0]
        say(f"{step.id[:8]}  {when:%Y-%m-%d %H:%M:%S}  {first}")
    return OK


def doctor(
    project: Annotated[
        Path | None, typer.Argument(help="A project's file, whose needs are tried as well.")
    ] = None,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="Ask the configured models two turns with a tool instead, and say what works. "
            "It costs a few thousand tokens each.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Check everything a job needs; says what to do about what is wrong."""

    async def examine() -> list[Check]:
        found = []
        examined = checks.examine_models() if model else checks.examine(project)
        async for check in examined:
            found.append(check)
            if not json:
                say(check.line())
        return found

    found = run(examine())
    if json:
        dump([asdict(check) for check in found])
    return OK if all(check.ok for check in found) else FAILED


def _places(job: str) -> Places:
    """What the job says about its checkpoints."""
    from cli import inspecting  # noqa: PLC0415 - loads the activities, which takes a second

    async def fetch() -> Places:
        return await inspecting.places(await connect(), job)

    return run(fetch())


def _checkpoints(job: str, found: Places, *moments: str) -> tuple[list[str], Checkpoints]:
    """The job's checkpoints at these moments, and where they are kept."""
    from cli import inspecting  # noqa: PLC0415 - loads the activities, which takes a second

    phases = [inspecting.moment(text) for text in moments]
    store = inspecting.repository(job, found)
    return [inspecting.commit_at(found, store, phase) for phase in phases], store


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command("list")(list_)
    for command in (show, files, diff, log, doctor):
        app.command()(command)
