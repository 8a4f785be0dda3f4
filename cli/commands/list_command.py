"""The command `list`: jobs, projects and trials."""

from __future__ import annotations

import shutil
import sys
from typing import Annotated, Any

import typer

from cli.jobs.job_list import list_jobs
from cli.jobs.polling import unpolled_queue_notice
from cli.options import Json
from cli.output import OK, print_json, print_note, print_result, render_text_table
from cli.temporal_errors import run_server_work
from engine.connection import connect_client

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
    json: Json = False,
) -> int:
    """List jobs, projects and trials, newest first. Needs no worker."""

    async def fetch_jobs() -> tuple[list[dict[str, Any]], list[str]]:
        client = await connect_client()
        jobs, open_jobs = await list_jobs(client, limit, is_open=is_open)
        notices = [
            await unpolled_queue_notice(client, queue, ids) for queue, ids in open_jobs.items()
        ]
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
