"""The command that reports: report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import Job, Json
from cli.output import OK, Mistake, dump, note, run, say
from engine.connection import connect

if TYPE_CHECKING:
    from cli.report.data import ProjectReport, Report


def report(
    job: Job,
    output: Annotated[
        Path | None,
        typer.Option(help="File to write; JOB.html in this folder if left out.", metavar="FILE"),
    ] = None,
    json: Json = False,
) -> int:
    """Write the report of a job or project, running or closed: one HTML file.

    Phases on a timeline, tokens and cost by step, refusals by gate and guard, the scope, what was
    delivered and what is unresolved, and whether the job shows a pattern that is watched for.
    Of a project, all that of each of its jobs, with the sums.
    With --json the figures go to standard output, or to FILE, and no page is written.
    """
    from cli.report.page import page  # noqa: PLC0415 - loads the activities, which takes a second

    found = run(_gathered(job))
    if json and output is None:
        dump(found.model_dump(mode="json"))
        return OK
    path = output or Path(f"{job.replace('/', '_')}.html")
    told = found.model_dump_json(indent=2) + "\n" if json else page(found)
    try:
        path.write_text(told, encoding="utf-8")
    except OSError as error:
        raise Mistake(f"{path} cannot be written: {error.strerror}") from None
    say(str(path))
    for remark in found.remarks:
        note(remark)
    return OK


async def _gathered(job: str) -> Report | ProjectReport:
    from cli.report.gather import gather  # noqa: PLC0415 - as above

    return await gather(await connect(), job)


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(report)
