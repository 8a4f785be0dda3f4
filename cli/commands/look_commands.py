"""Commands that show jobs: show, watch, list, log and report."""

from __future__ import annotations

import shutil
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter

from cli.jobs.job_view import JobView, view_job
from cli.jobs.lost_notifications import lost_notifications_line
from cli.jobs.missing_jobs import forgotten_job_notice
from cli.jobs.outline_text import job_exit_code, outline_sheet, print_job_outcome, status_outline
from cli.jobs.polling import task_queue_notice
from cli.jobs.watch import JsonScreen, follow_job, follow_on_console, noting_interrupt
from cli.options import Job, Json
from cli.output import (
    OK,
    UserError,
    print_json,
    print_note,
    print_result,
    render_text_table,
    result_console,
)
from cli.temporal_errors import run_server_work
from cli.trials.trial_usage import with_trial_usages
from engine.connection import connect_client
from protocol.status import AnyStatus, JobStatus

if TYPE_CHECKING:
    from activities.checkpoints import LogEntry
    from cli.report.report_content import AnyReport
from temporalio.client import Client, WorkflowExecutionStatus

from cli.jobs.job_memo import JOB, PROJECT, TRIAL, job_start_time, read_job_memo
from cli.jobs.job_view import CLOSED, NOT_BEGUN, find_own_run
from protocol.payload_reading import EncryptedPayloadError
from protocol.short_text import one_line
from protocol.teams import TEAM, own_memo


def _print_schema(is_wanted: bool) -> None:
    if is_wanted:
        print_json(TypeAdapter(AnyStatus).json_schema(mode="serialization"))
        raise typer.Exit


def show(
    job: Job,
    json: Json = False,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema",
            help="Print the JSON Schema of what --json prints.",
            is_eager=True,
            callback=_print_schema,
        ),
    ] = False,
) -> int:
    """Show a job: what needs a person, its result or its list, the scope, and what it used.

    Without a worker the last recorded state is shown and marked as such. --json prints the answer
    of the query `status`, with what only the server knows: what is under way and what is tried
    again.
    """

    async def fetch_job() -> tuple[JobView, str]:
        client = await connect_client()
        job_view = await with_trial_usages(client, await view_job(client, job))
        if job_view.live or job_view.closed:
            return job_view, ""
        return job_view, await task_queue_notice(client, job_view.queue)

    job_view, unpolled = run_server_work(fetch_job())
    status = job_view.status
    if isinstance(status, JobStatus):
        from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second

        checkpoint_reader.add_checkpoint_fields(status)
    status.forgotten = (forgotten_job_notice(job) if job_view.closed else None) or ""
    if not job_view.live:
        print_note(f"{job_view.silence}; this is the last state on record")
    if unpolled:
        print_note(unpolled)
    if status.forgotten:
        print_note(status.forgotten)
    if json:
        print_json(status.model_dump(mode="json"))
        return OK
    for line in outline_sheet(status_outline(status)):
        print_result(line)
    lasted = job_view.elapsed_text(datetime.now(UTC))
    print_result(f"{'ran' if job_view.ended else 'running'} for {lasted}")
    return OK


def watch(job: Job, json: Json = False) -> int:
    """Follow a job, project or trial until it ends: phase, todos, tokens, cost, last steps.

    On a terminal a live view; piped, a line per change; with --json an object per change. Ctrl-C
    stops watching; the job continues.
    """
    return run_server_work(_run_watch(job, json=json))


async def _run_watch(job: str, *, json: bool) -> int:
    client = await connect_client()
    with noting_interrupt(job):
        if json:
            return job_exit_code(await follow_job(client, job, JsonScreen()))
        job_view = await follow_on_console(result_console(), client, job)
    return print_job_outcome(await with_trial_usages(client, job_view), json=False)


COLUMNS = ("job_id", "agent", "status", "phase", "title", "started")
NARROWED = (
    ("title", 24),
    ("agent", 0),
    ("started", 0),
    ("phase", 12),
    ("title", 10),
    ("status", 10),
)
"""Columns that a narrow terminal cuts, in this order, and the least that stays of each."""


def list_(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    is_open: Annotated[
        bool, typer.Option("--open", help="Only those that have not ended, such as waiting ones.")
    ] = False,
    team: Annotated[str, typer.Option(help="Only those of this team.", metavar="NAME")] = "",
    json: Json = False,
) -> int:
    """List jobs, projects and trials, newest first. Needs no worker."""

    async def fetch_jobs() -> tuple[list[dict[str, Any]], list[str]]:
        client = await connect_client()
        jobs, open_jobs = await list_jobs(client, limit, is_open=is_open, team=team)
        notices = [await task_queue_notice(client, queue, ids) for queue, ids in open_jobs.items()]
        notices.append(await lost_notifications_line(client))
        return jobs, list(filter(None, notices))

    jobs, notices = run_server_work(fetch_jobs())
    for notice in notices:
        print_note(notice)
    if json:
        print_json(jobs)
        return OK
    if not jobs:
        has_ended = ", or all have ended" if is_open else ""
        print_note(f"no jobs yet{has_ended}; `starter.py start AGENT --instructions …` starts one")
        return OK
    # The last phase of a completed job says less than what was met.
    shown = [{**row, "phase": row.get("met") or row["phase"]} for row in jobs]
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    for line in render_text_table(shown, COLUMNS, width, NARROWED):
        print_result(line)
    if len(jobs) == limit:
        print_note(f"the newest {limit}; `--limit` shows more, `--open` those that have not ended")
    return OK


def log(job: Job, json: Json = False) -> int:
    """List a job's steps that changed anything, oldest first.

    For a project: the commits of its product, one for each accepted piece of work.
    """
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second
    from cli.projects import project_files  # noqa: PLC0415 - takes a second

    places = checkpoint_reader.fetch_checkpoint_places(job)
    steps: list[LogEntry] | list[project_files.CommitLine]
    if places.project is not None:
        repository = project_files.open_project_files(job, places)
        steps = project_files.read_project_commits(
            repository, project_files.project_files_tip(repository, state=False)
        )
    else:
        [commit], store = checkpoint_reader.checkpoint_commits_at(job, places, "now")
        steps = checkpoint_reader.read_checkpoint_log(store, commit)
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


def report(
    job: Annotated[
        str | None, typer.Argument(help="Id of the job, as `list` shows it.", metavar="JOB")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; JOB.html in this folder if left out.", metavar="FILE"),
    ] = None,
    all: Annotated[
        bool, typer.Option("--all", help="What all jobs have spent, by team and agent.")
    ] = False,
    csv: Annotated[bool, typer.Option("--csv", help="With --all: as CSV.")] = False,
    json: Json = False,
) -> int:
    """Write the report of a job, project or trial, running or closed, as one HTML file.

    It shows phases on a timeline, tokens and cost by step, refusals by gate and guard, the scope,
    deliverables and unresolved points, and whether the job shows one of the patterns to watch for.
    For a project, it shows this for each of its jobs, with totals; for a trial, how its
    configurations compare, what they change, and its runs. With --json the figures go to standard
    output, or to FILE, and no page is written. --all prints the spend of all jobs that the server
    still has, by team and agent.
    """
    if all is (job is not None) or (csv and not all):
        raise UserError("name a JOB, or --all, which --csv goes with")
    if job is None:
        return _report_spend(csv=csv, json=json)
    from cli.report.html_page import render_html_page  # noqa: PLC0415 - loads the activities, which takes a second

    job_report = run_server_work(_fetch_report(job))
    if json and output is None:
        print_json(job_report.model_dump(mode="json"))
        return OK
    path = output or Path(f"{job.replace('/', '_')}.html")
    content = job_report.model_dump_json(indent=2) + "\n" if json else render_html_page(job_report)
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error.strerror}") from None
    print_result(str(path))
    for remark in job_report.remarks:
        print_note(remark)
    return OK


def _report_spend(*, csv: bool, json: bool) -> int:
    from cli.report.team_spend import COLUMNS, spend_by_team, spend_csv  # noqa: PLC0415 - rarely used

    async def fetch_spend() -> list[dict[str, Any]]:
        return await spend_by_team(await connect_client())

    rows = run_server_work(fetch_spend())
    if json:
        print_json(rows)
    else:
        for line in [spend_csv(rows)] if csv else render_text_table(rows, COLUMNS):
            print_result(line)
    return OK


async def _fetch_report(job: str) -> AnyReport:
    from cli.report.report_builder import build_report  # noqa: PLC0415 - as above

    return await build_report(await connect_client(), job)


PAGE = 200
MOST_STATE = 60
"""Maximum length of a table cell: a waiting start lists everything it lacks."""


async def list_jobs(
    client: Client, limit: int, *, is_open: bool = False, team: str = ""
) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    """Return the newest jobs in Temporal's visibility store, and the open ones by task queue.

    It needs no worker.

    Args:
        limit: Maximum number.
        is_open: Whether to leave out jobs that have ended.
        team: The team to list; empty for all.
    """
    jobs: list[tuple[datetime, dict[str, Any]]] = []
    open_jobs: dict[str, list[str]] = {}
    # Earlier runs of a job that continued as new are not jobs of their own.
    query = (
        f"WorkflowType IN ('{JOB}', '{PROJECT}', '{TRIAL}') AND ExecutionStatus != 'ContinuedAsNew'"
    )
    if is_open:
        query += " AND ExecutionStatus = 'Running'"
    # Bounded, since a page is one message and memos may be large.
    known: set[str] = set()
    async for execution in client.list_workflows(query, page_size=PAGE):
        if execution.id in known:
            continue  # a run before a reset; newest runs come first
        if len(jobs) == limit:
            break
        known.add(execution.id)
        try:
            execution = await find_own_run(client, execution)  # noqa: PLW2901 - not a refused start
            memo = await read_job_memo(execution)
        except EncryptedPayloadError as error:
            memo = {"title": f"cannot be read: {error}"}
        of_team = str(own_memo(memo, execution.run_id).get(TEAM) or "")
        if team and of_team != team:
            continue
        outcome = CLOSED.get(execution.status or WorkflowExecutionStatus.RUNNING)
        if outcome == "completed" and memo.get("status") in ("failed", "cancelled"):
            # For Temporal, a failed project or a cancelled trial completes with a result.
            outcome = str(memo["status"])
        if outcome is None:
            open_jobs.setdefault(execution.task_queue, []).append(execution.id)
        started = job_start_time(execution, memo)
        state = str(memo.get("phase") or memo.get("state") or "")
        row = {
            "job_id": execution.id,
            "agent": one_line(str(memo.get("agent") or ""), MOST_STATE) or None,
            "team": one_line(of_team, MOST_STATE) or None,
            "status": outcome or memo.get("status") or ("running" if memo else NOT_BEGUN),
            "phase": one_line(state, MOST_STATE) or None,
            "met": one_line(str(memo.get("met") or ""), MOST_STATE) or None,
            "title": memo.get("title"),
            "started": f"{started.astimezone():%Y-%m-%d %H:%M %Z}",
        }
        jobs.append((started, row))
    # The server orders jobs by their newest runs.
    jobs.sort(key=lambda job: job[0], reverse=True)
    return [row for _, row in jobs], open_jobs
