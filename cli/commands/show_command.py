"""The command `show`: a job's state."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer
from pydantic import TypeAdapter

from cli.jobs.job_view import JobView, view_job
from cli.jobs.missing_jobs import forgotten_job_notice
from cli.jobs.outline_text import outline_sheet, status_outline
from cli.jobs.polling import unpolled_queue_notice
from cli.options import Job, Json
from cli.output import OK, print_json, print_note, print_result
from cli.temporal_errors import run_server_work
from cli.trials.trial_usage import with_trial_usages
from engine.connection import connect_client
from protocol.status import AnyStatus, JobStatus


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
        return job_view, await unpolled_queue_notice(client, job_view.queue)

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
