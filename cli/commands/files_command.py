"""Commands that inspect: list, show, files, diff, log, doctor."""

from __future__ import annotations

import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.checks import doctor as checks
from cli.checks.check_result import Check
from cli.jobs import job_rendering
from cli.jobs.job_view import JobView, list_jobs, view_job
from cli.jobs.missing_jobs import forgotten_notice
from cli.options import Job, Json
from cli.output import (
    FAILED,
    OK,
    UserError,
    name_running_program,
    print_advice,
    print_json,
    print_note,
    print_result,
    run_async,
)
from cli.trials.trial_summary import with_trial_usages
from engine.connection import connect_client

if TYPE_CHECKING:
    from activities.checkpoints import Checkpoints, LogEntry
    from cli.job_files.checkpoint_reader import CheckpointPlaces

MOMENT = "The start of this phase, or `now`."
COLUMNS = ("job_id", "agent", "status", "phase", "title", "started")


def list_(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    json: Json = False,
) -> int:
    """List jobs, projects and trials, newest first. Needs no worker."""

    async def fetch_jobs() -> list[dict[str, Any]]:
        return await list_jobs(await connect_client(), limit)

    jobs = run_async(fetch_jobs())
    if json:
        print_json(jobs)
        return OK
    if not jobs:
        print_note("no jobs yet; `starter.py start AGENT --instructions …` starts one")
        return OK
    for line in job_rendering.render_text_table(jobs, COLUMNS):
        print_result(line)
    return OK


def show(job: Job, json: Json = False) -> int:
    """Show a job's state: phase, todos, usage, what it waits for; for a closed job, its result.

    Without a worker the last recorded state is shown and marked as such. --json prints the answer
    of the query `status` with `job_id`, `live` (whether a worker answered), `tree` and `retrying`
    (failed activities that are retried, with attempt and reason) added.
    """

    async def fetch_job() -> JobView:
        client = await connect_client()
        return await with_trial_usages(client, await view_job(client, job))

    job_view = run_async(fetch_job())
    notice = forgotten_notice(job) if job_view.closed else None
    if not job_view.live:
        print_note(f"{job_view.silence}; this is the last state on record")
    if notice:
        print_note(notice)
    if json:
        fields = job_view.status | ({"forgotten": notice} if notice else {})
        fields |= {"retrying": job_view.pending}
        print_json({**fields, **_checkpoint_fields(job, job_view), "live": job_view.live})
    else:
        lines = job_rendering.render_job_sheet(job_view.status, job_view.waiting)
        lines += [name_running_program(f"retrying {text}") for text in job_view.pending]
        # A trial's sheet has what its end shows.
        ends = job_view.closed and not job_view.status.get("trial")
        for line in [*lines, *(job_rendering.job_outcome_lines(job_view.status) if ends else [])]:
            print_result(line)
        lasted = job_rendering.elapsed_text(job_view.started, job_view.ended or datetime.now(UTC))
        print_result(f"{'ran' if job_view.ended else 'running'} for {lasted}")
    return OK


def _checkpoint_fields(job: str, job_view: JobView) -> dict[str, str | None]:
    if job_view.status.get("project") or job_view.status.get("trial"):
        return {}
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second

    return checkpoint_reader.read_checkpoint_fields(job, job_view.status)


def files(
    job: Job,
    path: Annotated[str, typer.Argument(help="A file to print or a folder to list.")] = "",
    at: Annotated[str, typer.Option(help=MOMENT, metavar="PHASE|now")] = "now",
    state: Annotated[
        bool, typer.Option("--state", help="For a project: its own files instead of the product.")
    ] = False,
    json: Json = False,
) -> int:
    """List or print a job's files, now or at the start of any phase, including undone ones.

    For a project: the files of its product as accepted so far.
    """
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second

    places = _fetch_checkpoint_places(job)
    if places.project is not None:
        return _print_project_files(job, path, at, state=state, json=json)
    if state:
        raise UserError(f"{job} is a job; --state is for projects")
    [commit], store = _moment_commits(job, places, at)
    content = checkpoint_reader.read_checkpoint_path(
        checkpoint_reader.files_at_checkpoint(store, commit), path
    )
    if isinstance(content, bytes):
        _print_content(content, path, commit, json=json)
    elif json:
        rows = [{"path": entry.path, "kind": entry.kind, "bytes": entry.size} for entry in content]
        print_json({"commit": commit, "files": rows})
    else:
        for entry in content:
            print_result(f"{entry.size:>10,}  {entry.path}{'/' if entry.kind == 'folder' else ''}")
    return OK


def _print_content(content: bytes, path: str, commit: str, *, json: bool) -> None:
    """Print a file; unmodified if the output is redirected."""
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second

    if json:
        print_json(
            {"path": path, "commit": commit, **checkpoint_reader.checkpoint_file_json(content)}
        )
    elif sys.stdout.isatty() and b"\0" in content:
        print_note(f"{path} is binary, {len(content):,} bytes; send it into a file to have it")
    elif sys.stdout.isatty():
        print_result(content.decode("utf-8", "replace").rstrip("\n"))
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)


def _print_project_files(project: str, path: str, moment: str, *, state: bool, json: bool) -> int:
    from cli.projects import project_files  # noqa: PLC0415 - loads the activities

    if moment != "now":
        raise UserError(f"{project} is a project, which has no phases: leave --at out")
    repository = project_files.open_project_files(project)
    commit = project_files.project_files_tip(repository, state=state)
    content = project_files.read_project_path(repository, commit, path)
    if isinstance(content, bytes):
        _print_content(content, path, commit, json=json)
    elif json:
        rows = [{"path": name, "kind": "file", "bytes": size} for name, size in content]
        print_json({"commit": commit, "files": rows})
    else:
        for name, size in content:
            print_result(f"{size:>10,}  {name}")
    return OK


def diff(
    job: Job,
    before: Annotated[str | None, typer.Argument(help=MOMENT, metavar="PHASE|now")] = None,
    after: Annotated[
        str | None,
        typer.Argument(help="The second moment; only with the first.", metavar="PHASE|now"),
    ] = None,
    path: Annotated[str, typer.Argument(help="Only this file, or the files in this folder.")] = "",
    stat: Annotated[bool, typer.Option("--stat", help="Names and sizes only.")] = False,
    name_only: Annotated[
        bool,
        typer.Option(
            "--name-only", help="Only names of files that the work on a repository changed."
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Show how a job's files differ between the starts of two phases, or between a phase and now.

    Without phases: what the work on a repository changed since it began, like `git diff`; for a
    project, up to its newest accepted work. The system's own files (archive/, tools/ and the like)
    are listed last and by name only; PATH shows their lines too.
    """
    if before is None:
        return _print_repository_diff(job, stat=stat, name_only=name_only, json=json)
    if after is None:
        raise UserError(f"diff {job} {before}: name a second moment, PHASE or now")
    if name_only:
        raise UserError("--name-only is for the work on a repository: leave the phases out")
    return _print_phase_diff(job, before, after, path, stat=stat, json=json)


def _print_phase_diff(
    job: str, before: str, after: str, path: str, *, stat: bool, json: bool
) -> int:
    """Print how the files differ between two moments of a job."""
    from cli.job_files import checkpoint_reader, file_differences  # noqa: PLC0415 - loads the activities

    for moment in (before, after):
        checkpoint_reader.parse_checkpoint_moment(moment)
    if (places := _fetch_checkpoint_places(job)).project is not None:
        raise UserError(
            f"{job} is a project, whose files are a git repository: `starter.py diff {job}` shows "
            "what was made, and `starter.py log` its commits"
        )
    commits, store = _moment_commits(job, places, before, after)
    old, new = (checkpoint_reader.files_at_checkpoint(store, commit) for commit in commits)
    changes = file_differences.list_differences(old, new, path)
    names = [text if text == "now" else f"phase {text}" for text in (before, after)]

    def text_of_change(difference: file_differences.Difference) -> str | None:
        if stat or difference.aside:
            return None
        return file_differences.render_difference(
            old, new, difference, (names[0], names[1]), all_lines=bool(path)
        )

    if json:
        print_json(
            {
                "commits": commits,
                "changes": [
                    difference.as_data(text_of_change(difference)) for difference in changes
                ],
            }
        )
        return OK
    for difference in changes:
        print_result(difference.as_line())
    for difference in changes:
        if lines := text_of_change(difference):
            print_result(
                f"\n{difference.change.path}: {lines}"
                if lines.startswith("binary")
                else f"\n{lines}"
            )
    if not changes:
        print_note("nothing differs")
    return OK


def _print_repository_diff(job: str, *, stat: bool, name_only: bool, json: bool) -> int:
    """Print what the work on a repository changed."""
    from cli.job_files import repository_diff  # noqa: PLC0415 - loads the activities

    places = _fetch_checkpoint_places(job)
    if places.project is not None:
        changed = repository_diff.diff_project_repository(job)
    else:
        [commit], store = _moment_commits(job, places, "now")
        changed = repository_diff.diff_job_repository(job, store, commit)
    form: repository_diff.Form = "names" if name_only else "stat" if stat else "patch"
    text = changed.render(form)
    if json:
        listed = {"base": changed.base, "tip": changed.tip, "paths": changed.paths}
        print_json({**listed, "diff": text.decode("utf-8", "replace")})
    elif text:
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
    else:
        print_note("nothing differs")
    return OK


def log(job: Job, json: Json = False) -> int:
    """List a job's steps that changed anything, oldest first.

    For a project: the commits of its product, one for each accepted piece of work.
    """
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second
    from cli.projects import project_files  # noqa: PLC0415 - takes a second

    places = _fetch_checkpoint_places(job)
    steps: list[LogEntry] | list[project_files.CommitLine]
    if places.project is not None:
        repository = project_files.open_project_files(job)
        steps = project_files.read_project_commits(
            repository, project_files.project_files_tip(repository, state=False)
        )
    else:
        [commit], store = _moment_commits(job, places, "now")
        steps = checkpoint_reader.read_checkpoint_steps(store, commit)
        if store.lacks_parent(steps[0].id):
            print_note("the steps before these are damaged or not in this store")
    if json:
        print_json(
            [
                {"id": step.id, "at": step.timestamp, "message": step.message.strip()}
                for step in steps
            ]
        )
        return OK
    for step in steps:
        when = datetime.fromtimestamp(step.timestamp, UTC).astimezone()
        first = step.message.strip().partition("\n")[0]
        print_result(f"{step.id[:8]}  {when:%Y-%m-%d %H:%M:%S}  {first}")
    return OK


def doctor(
    project: Annotated[
        Path | None, typer.Argument(help="A project's file, whose needs are tested as well.")
    ] = None,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="Instead, test the configured models in two turns with a tool. It costs a "
            "few thousand tokens for each model.",
        ),
    ] = False,
    json: Json = False,
) -> int:
    """Check everything a job needs, and say how to fix what is wrong."""

    async def run_checks() -> list[Check]:
        results = []
        examined = checks.check_models() if model else checks.run_checks(project)
        async for check in examined:
            results.append(check)
            if not json:
                print_advice(check.as_line())
        return results

    results = run_async(run_checks())
    if json:
        print_json([asdict(check) for check in results])
    return OK if all(check.ok for check in results) else FAILED


def _fetch_checkpoint_places(job: str) -> CheckpointPlaces:
    """Return what the job reports about its checkpoints."""
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - loads the activities, which takes a second

    async def fetch_places() -> CheckpointPlaces:
        return await checkpoint_reader.find_checkpoint_places(await connect_client(), job)

    return run_async(fetch_places())


def _moment_commits(
    job: str, places: CheckpointPlaces, *moments: str
) -> tuple[list[str], Checkpoints]:
    """Return the job's commits at these moments, and its repository."""
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - loads the activities, which takes a second

    phases = [checkpoint_reader.parse_checkpoint_moment(text) for text in moments]
    store = checkpoint_reader.open_checkpoints_for_reading(job, places)
    return [checkpoint_reader.checkpoint_commit_at(places, store, phase) for phase in phases], store


def add_inspect_commands(app: typer.Typer) -> None:
    """Register this module's commands."""
    app.command("list")(list_)
    for command in (show, files, diff, log, doctor):
        app.command()(command)
