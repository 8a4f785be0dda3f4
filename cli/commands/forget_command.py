"""The command forget."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any

import typer
from temporalio.client import WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from cli.jobs.job_view import explain_job_failure
from cli.options import Json
from cli.output import OK, UserError, print_json, print_note, print_result
from cli.schedules.service_schedules import set_service_schedule
from cli.temporal_errors import run_server_work
from engine.connection import connect_client, task_queue

SCHEDULE = "longhaul-forgetting"
SILENT_SECONDS = 3.0
PATIENCE_SECONDS = 60.0


def forget(
    job: Annotated[
        str, typer.Argument(help="Id of the closed job, or of the project.", metavar="JOB")
    ] = "",
    traces: Annotated[bool, typer.Option("--traces", help="Also its traces.")] = False,
    requirements: Annotated[
        bool,
        typer.Option("--requirements", help="Also its requirements, decided or not."),
    ] = False,
    schedule: Annotated[
        str,
        typer.Option(
            help="Let workers delete jobs that were closed longer ago than their keep_days, "
            "at this interval, such as 1d; `off` ends it."
        ),
    ] = "",
    json: Json = False,
) -> int:
    """Delete what a closed job left: its workspace, checkpoints and index. This cannot be undone.

    A project is deleted with its jobs; a job of a running project is kept, like a running job.
    Forks have their own copies. A worker does the deletion, as workflow `Forget` with input
    `{"job": "…"}`.
    """
    if bool(job) == bool(schedule):
        raise UserError("name the job to forget, or --schedule 1d to forget those that are due")
    if schedule:
        state = run_server_work(set_service_schedule(SCHEDULE, "Forget", schedule))
        print_json({"schedule": state}) if json else print_result(state)
        return OK
    options = {"job": job, "traces": traces, "requirements": requirements}
    result = run_server_work(
        _run_forget_workflow(job, {key: value for key, value in options.items() if value})
    )
    if json:
        print_json(result)
        return OK
    for job_id in result["jobs"]:
        print_result(f"{job_id} forgotten")
    for line in result["notes"]:
        print_note(line)
    return OK


async def _run_forget_workflow(job: str, request: dict[str, Any]) -> dict[str, Any]:
    client, queue = await connect_client(), task_queue()
    with suppress(RPCError):
        # The workers on the job's task queue serve the root with its files.
        queue = (await client.get_workflow_handle(job).describe()).task_queue
    name = f"forget-{job}"[:1000]
    try:
        handle = await client.start_workflow(
            "Forget",
            request,
            id=name,
            task_queue=queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            result_type=dict[str, Any],
        )
    except WorkflowAlreadyStartedError:
        raise UserError(f"{job} is being forgotten already, by workflow {name}") from None
    try:
        result = asyncio.ensure_future(handle.result())
        await asyncio.wait([result], timeout=SILENT_SECONDS)
        if not result.done():
            print_note(
                f"workflow {name} waits for a worker on task queue {queue}, or is still at it"
            )
        return await asyncio.wait_for(result, PATIENCE_SECONDS)
    except WorkflowFailureError as error:
        raise UserError(explain_job_failure(error)) from None
    except TimeoutError:
        raise UserError(f"nothing is forgotten yet; {name} goes on without this") from None
