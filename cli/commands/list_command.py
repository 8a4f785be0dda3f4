"""The command `list`: jobs, projects and trials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.jobs.job_list import list_jobs
from cli.options import Json
from cli.output import OK, print_json, print_note, print_result, render_text_table
from cli.temporal_errors import run_server_work
from engine.connection import connect_client

if TYPE_CHECKING:
    pass

COLUMNS = ("job_id", "agent", "status", "phase", "title", "started")


def list_(
    limit: Annotated[int, typer.Option(min=1, help="Maximum number, newest first.")] = 50,
    json: Json = False,
) -> int:
    """List jobs, projects and trials, newest first. Needs no worker."""

    async def fetch_jobs() -> list[dict[str, Any]]:
        return await list_jobs(await connect_client(), limit)

    jobs = run_server_work(fetch_jobs())
    if json:
        print_json(jobs)
        return OK
    if not jobs:
        print_note("no jobs yet; `starter.py start AGENT --instructions …` starts one")
        return OK
    for line in render_text_table(jobs, COLUMNS):
        print_result(line)
    return OK
