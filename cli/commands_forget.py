"""The command that forgets: forget."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Annotated, Any

import typer
from temporalio.client import WorkflowFailureError
from temporalio.common import WorkflowIDConflictPolicy
from temporalio.exceptions import WorkflowAlreadyStartedError
from temporalio.service import RPCError

from cli.jobs import explain
from cli.options import Json
from cli.output import OK, Mistake, dump, note, run, say
from cli.scheduling import every
from engine.connection import connect, task_queue

SCHEDULE = "longhaul-forgetting"
SILENT_SECONDS = 3.0
PATIENCE_SECONDS = 60.0


def forget(
    job: Annotated[
        str, typer.Argument(help="Id of the closed job, or of the project.", metavar="JOB")
    ] = "",
    traces: Annotated[bool, typer.Option("--traces", help="Its traces as well.")] = False,
    requirements: Annotated[
        bool,
        typer.Option("--requirements", help="Its requirements as well, decided or not."),
    ] = False,
    schedule: Annotated[
        str,
        typer.Option(
            help="Have workers forget, as often as this (such as 1d), jobs that have been closed "
            "for longer than their keep_days; `off`: no more."
        ),
    ] = "",
    json: Json = False,
) -> int:
    """Remove what a closed job left: its workspace, checkpoints and index. There is no way back.

    With a project go its jobs; a job of a running project stays, like one that runs. Forks of it
    have copies of their own. A worker does it, as workflow `Forget` with input `{"job": "…"}`.
    """
    if bool(job) == bool(schedule):
        raise Mistake("name the job to forget, or --schedule 1d to forget those that are due")
    if schedule:
        told = run(every(SCHEDULE, "Forget", schedule))
        dump({"schedule": told}) if json else say(told)
        return OK
    asked = {"job": job, "traces": traces, "requirements": requirements}
    done = run(_forget(job, {key: value for key, value in asked.items() if value}))
    if json:
        dump(done)
        return OK
    for one in done["jobs"]:
        say(f"{one} forgotten")
    for line in done["notes"]:
        note(line)
    return OK


async def _forget(job: str, asked: dict[str, Any]) -> dict[str, Any]:
    client, queue = await connect(), task_queue()
    with suppress(RPCError):
        # Where the job ran, workers serve the root that it is on.
        queue = (await client.get_workflow_handle(job).describe()).task_queue
    name = f"forget-{job}"[:1000]
    try:
        handle = await client.start_workflow(
            "Forget",
            asked,
            id=name,
            task_queue=queue,
            id_conflict_policy=WorkflowIDConflictPolicy.FAIL,
            result_type=dict[str, Any],
        )
    except WorkflowAlreadyStartedError:
        raise Mistake(f"{job} is being forgotten already, by workflow {name}") from None
    try:
        result = asyncio.ensure_future(handle.result())
        await asyncio.wait([result], timeout=SILENT_SECONDS)
        if not result.done():
            note(f"workflow {name} waits for a worker on task queue {queue}, or is still at it")
        return await asyncio.wait_for(result, PATIENCE_SECONDS)
    except WorkflowFailureError as error:
        raise Mistake(explain(error)) from None
    except TimeoutError:
        raise Mistake(f"nothing is forgotten yet; {name} goes on without this") from None


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(forget)
