"""The command report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import Job, Json
from cli.output import OK, UserError, print_json, print_note, print_result
from cli.temporal_errors import run_server_work
from engine.connection import connect_client

if TYPE_CHECKING:
    from cli.report.report_content import AnyReport


def report(
    job: Job,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; JOB.html in this folder if left out.", metavar="FILE"),
    ] = None,
    json: Json = False,
) -> int:
    """Write the report of a job, project or trial, running or closed, as one HTML file.

    It shows phases on a timeline, tokens and cost by step, refusals by gate and guard, the scope,
    deliverables and unresolved points, and whether the job shows one of the patterns to watch for.
    For a project, it shows this for each of its jobs, with totals; for a trial, how its
    configurations compare, what they change, and its runs. With --json the figures go to standard
    output, or to FILE, and no page is written.
    """
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


async def _fetch_report(job: str) -> AnyReport:
    from cli.report.report_builder import build_report  # noqa: PLC0415 - as above

    return await build_report(await connect_client(), job)
