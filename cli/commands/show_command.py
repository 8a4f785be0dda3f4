"""The command `show`: a job's state."""

from __future__ import annotations

from datetime import UTC, datetime

from cli.jobs.job_outcome import job_outcome_lines
from cli.jobs.job_sheet import render_job_sheet
from cli.jobs.job_view import JobView, view_job
from cli.jobs.missing_jobs import forgotten_job_notice
from cli.options import Job, Json
from cli.output import OK, print_json, print_note, print_result
from cli.temporal_errors import run_server_work
from cli.trials.trial_usage import with_trial_usages
from engine.connection import connect_client
from engine.program_names import name_running_program


def show(job: Job, json: Json = False) -> int:
    """Show a job's state: phase, todos, usage, what it waits for; for a closed job, its result.

    Without a worker the last recorded state is shown and marked as such. --json prints the answer
    of the query `status` with `job_id`, `live` (whether a worker answered), `tree` and `retrying`
    (failed activities that are retried, with attempt and reason) added.
    """

    async def fetch_job() -> JobView:
        client = await connect_client()
        return await with_trial_usages(client, await view_job(client, job))

    job_view = run_server_work(fetch_job())
    notice = forgotten_job_notice(job) if job_view.closed else None
    if not job_view.live:
        print_note(f"{job_view.silence}; this is the last state on record")
    if notice:
        print_note(notice)
    if json:
        fields = job_view.status | ({"forgotten": notice} if notice else {})
        fields |= {"retrying": [*job_view.pending, *job_view.job_retries]}
        print_json({**fields, **_show_checkpoint_fields(job, job_view), "live": job_view.live})
    else:
        lines = render_job_sheet(job_view.status, job_view.waiting)
        retries = [*job_view.pending, *job_view.job_retries]
        lines += [name_running_program(f"retrying {text}") for text in retries]
        # A trial's sheet has what its end shows.
        ends = job_view.closed and not job_view.status.get("trial")
        for line in [*lines, *(job_outcome_lines(job_view.status) if ends else [])]:
            print_result(line)
        lasted = job_view.elapsed_text(datetime.now(UTC))
        print_result(f"{'ran' if job_view.ended else 'running'} for {lasted}")
    return OK


def _show_checkpoint_fields(job: str, job_view: JobView) -> dict[str, str | None]:
    if job_view.status.get("project") or job_view.status.get("trial"):
        return {}
    from cli.job_files import checkpoint_reader  # noqa: PLC0415 - takes a second

    return checkpoint_reader.read_checkpoint_fields(job, job_view.status)
