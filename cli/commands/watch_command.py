"""The command `watch`: follows a job until it ends."""

from __future__ import annotations

from cli.jobs.outline_text import job_exit_code, print_job_outcome
from cli.jobs.watch import JsonScreen, follow_job, follow_on_console, noting_interrupt
from cli.options import Job, Json
from cli.output import result_console
from cli.temporal_errors import run_server_work
from cli.trials.trial_usage import with_trial_usages
from engine.connection import connect_client


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
