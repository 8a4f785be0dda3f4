"""Commands that look: list, show, files, diff, log, doctor."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import doctor as checks
from cli import view
from cli.check import Check
from cli.forgotten import forgotten
from cli.jobs import Seen, listed, look
from cli.options import Job, Json
from cli.output import FAILED, OK, dump, note, run, say
from engine.connection import connect

if TYPE_CHECKING:
    from activities.checkpoints import Checkpoints
    from cli.project_files import Project

MOMENT = (
    "Of a job: the start of this phase, or `now`. Of a project: a commit that `log` names, or "
    "`now`."
)
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
        say(f"running for {view.elapsed(seen.started, seen.ended or datetime.now(UTC))}")
    return OK


def _standing(job: str, seen: Seen) -> dict[str, str | None]:
    if seen.status.get("project"):
        return {}
    from cli import inspecting  # noqa: PLC0415 - takes a second

    return inspecting.standing(job, seen.status)


def files(
    job: Job,
    path: Annotated[str, typer.Argument(help="A file to print or a folder to list.")] = "",
    at: Annotated[
        str,
        typer.Option(help=MOMENT, metavar="PHASE|COMMIT|now"),
    ] = "now",
    json: Json = False,
) -> int:
    """List or print a job's files, now or at the start of any phase, undone ones included.

    Of a project, the files that were accepted, now or as of a commit that `log` names.
    """
    from cli import inspecting, project_files  # noqa: PLC0415 - takes a second

    rows: list[dict[str, Any]] = []
    if project := project_files.project_of(job):
        commit = project.commit(at)
        content = project.listing(commit, path)
        if not isinstance(content, bytes):
            rows = [{"path": name, "kind": "file", "bytes": size} for name, size in content]
    else:
        [commit], store = _checkpoints(job, at)
        found = inspecting.listing(inspecting.files_at(store, commit), path)
        content = found if isinstance(found, bytes) else []
        if not isinstance(found, bytes):
            rows = [{"path": one.path, "kind": one.kind, "bytes": one.size} for one in found]
    if isinstance(content, bytes):
        if json:
            dump({"path": path, "commit": commit, **inspecting.content_data(content)})
        elif sys.stdout.isatty() and b"\0" in content:
            note(f"{path} is binary, {len(content):,} bytes; send it into a file to have it")
        elif sys.stdout.isatty():
            say(content.decode("utf-8", "replace").rstrip("\n"))
        else:
            sys.stdout.flush()
            sys.stdout.buffer.write(content)
    elif json:
        dump({"commit": commit, "files": rows})
    else:
        for row in rows:
            end = "/" if row["kind"] == "folder" else ""
            say(f"{row['bytes']:>10,}  {row['path']}{end}")
    return OK


def diff(
    job: Job,
    before: Annotated[str, typer.Argument(help=MOMENT, metavar="PHASE|COMMIT|now")],
    after: Annotated[str, typer.Argument(help="The same.", metavar="PHASE|COMMIT|now")],
    path: Annotated[str, typer.Argument(help="Only this file, or what is in this folder.")] = "",
    stat: Annotated[bool, typer.Option("--stat", help="Names and sizes only.")] = False,
    json: Json = False,
) -> int:
    """Tell how a job's files differ between the starts of two phases, or a phase and now.

    What the system keeps (archive/, tools/ and the like) is listed last and by name only; with
    PATH its lines are shown as well. Of a project, how two commits differ that `log` names.
    """
    from cli import differences, inspecting, project_files  # noqa: PLC0415 - loads the activities

    if project := project_files.project_of(job):
        return _project_diff(
            project, [project.commit(text) for text in (before, after)], path, stat=stat, json=json
        )
    commits, store = _checkpoints(job, before, after)
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
    """Tell a job's story: each step that changed anything, oldest first; a project's, by commit."""
    from cli import inspecting, project_files  # noqa: PLC0415 - takes a second

    if project := project_files.project_of(job):
        story = project.story()
    else:
        [commit], store = _checkpoints(job, "now")
        story = inspecting.story(store, commit)
        if store.breaks_off(story[0].id):
            note("the steps before these are damaged or not in this store")
    if json:
        dump([{"id": step.id, "at": step.at, "message": step.message.strip()} for step in story])
        return OK
    for step in story:
        when = datetime.fromtimestamp(step.at, UTC).astimezone()
        first = step.message.strip().partition("\n")[0]
        say(f"{step.id[:8]}  {when:%Y-%m-%d %H:%M:%S}  {first}")
    return OK


def _project_diff(
    project: Project, commits: list[str], path: str, *, stat: bool, json: bool
) -> int:
    found = project.changes(commits[0], commits[1], path)
    if json:
        changes = [{"path": name, **({} if stat else {"diff": text})} for name, text in found]
        dump({"commits": commits, "changes": changes})
        return OK
    for name, text in found:
        say(name if stat else text)
    if not found:
        note("nothing differs")
    return OK


def doctor(json: Json = False) -> int:
    """Check everything a job needs; says what to do about what is wrong."""

    async def examine() -> list[Check]:
        found = []
        async for check in checks.examine():
            found.append(check)
            if not json:
                say(check.line())
        return found

    found = run(examine())
    if json:
        dump([asdict(check) for check in found])
    return OK if all(check.ok for check in found) else FAILED


def _checkpoints(job: str, *moments: str) -> tuple[list[str], Checkpoints]:
    """The job's checkpoints at these moments, and where they are kept."""
    from cli import inspecting  # noqa: PLC0415 - loads the activities, which takes a second

    phases = [inspecting.moment(text) for text in moments]

    async def fetch() -> inspecting.Places:
        return await inspecting.places(await connect(), job)

    found = run(fetch())
    store = inspecting.repository(job, found)
    return [inspecting.commit_at(found, store, phase) for phase in phases], store


def add_to(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command("list")(list_)
    for command in (show, files, diff, log, doctor):
        app.command()(command)
