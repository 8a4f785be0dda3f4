"""The command `adopt`: takes a fork's work into a project."""

from typing import Annotated

import typer

from cli.jobs.job_view import JobView, view_job
from cli.options import Json
from cli.output import OK, print_json, print_result
from cli.temporal_errors import run_server_work
from engine.connection import connect_client


def adopt(
    project: Annotated[str, typer.Argument(help="A project that has ended.", metavar="PROJECT")],
    job: Annotated[str, typer.Argument(help="A fork of one of its jobs.", metavar="JOB")],
    json: Json = False,
) -> int:
    """Merge the work of a fork into the product of the project that its first job worked for.

    The person who adopts it answers for it: the system does not run its tests.
    """
    from cli.projects import adoption  # noqa: PLC0415 - loads the activities, which takes a second

    async def fetch_views() -> tuple[JobView, JobView]:
        client = await connect_client()
        return await view_job(client, project), await view_job(client, job)

    commit = adoption.adopt_job(*run_server_work(fetch_views()))
    if json:
        print_json({"project": project, "job": job, "commit": commit})
    else:
        print_result(f"{project}: {job} is merged as {commit[:12]}; `starter.py log {project}`")
    return OK
