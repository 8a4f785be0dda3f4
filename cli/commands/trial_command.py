"""The command trial: one job under several configurations, compared."""

import re
from pathlib import Path
from typing import Annotated

import typer
from temporalio.client import Client, WorkflowFailureError
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode

from cli.jobs.job_memo import TRIAL
from cli.jobs.job_view import explain_job_failure, view_job
from cli.jobs.outline_text import OUTCOME, outline_lines, status_outline
from cli.jobs.watch import follow_on_console, noting_interrupt
from cli.options import Json
from cli.output import FAILED, OK, UserError, err_console, print_json, print_note, print_result
from cli.start.job_input import check_job_input_size
from cli.start.job_start import check_new_job_id, new_job_id, start_job
from cli.start.start_files import read_trial_file
from cli.temporal_errors import run_server_work
from cli.trials.trial_usage import with_trial_usages
from engine.connection import connect_client
from protocol.short_text import shell_quoted
from protocol.status import TrialStatus
from protocol.trial_start import TrialStart


def trial(
    file: Annotated[Path, typer.Argument(help="YAML file of the trial.", metavar="FILE")],
    id: Annotated[
        str | None, typer.Option(help="Id of the trial; made from the file's name if left out.")
    ] = None,
    attach: Annotated[
        bool, typer.Option("--attach", help="Wait for the trial of this --id, started before.")
    ] = False,
    json: Json = False,
) -> int:
    """Run one job several times under two or more configurations, and compare how often it
    completes.

    FILE names the start, or a fork of a job's phase, the configurations and the number of runs.
    Ctrl-C stops waiting; the trial continues.
    """
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", file.stem).strip("-") or "trial"
    trial_id = new_job_id(stem) if id is None else id
    check_new_job_id(trial_id)
    if attach and id is None:
        raise UserError("--attach: goes with --id, which names the trial")
    start = read_trial_file(file)
    return run_server_work(_run_trial(file, trial_id, start, attach=attach, json=json))


def trial_attach_command(file: Path, trial_id: str) -> str:
    """Return the command that waits for a trial, which works in this folder."""
    return f"`starter.py trial {shell_quoted(str(file))} --id {trial_id} --attach`"


async def _run_trial(
    file: Path, trial_id: str, start: TrialStart, *, attach: bool, json: bool
) -> int:
    client = await connect_client()
    if attach:
        await _check_trial_exists(client, trial_id)
    else:
        data = start.model_dump(mode="json")
        check_job_input_size(data)
        await start_job(client, trial_id, data, TRIAL)
    print_note(f"trial {trial_id}; {trial_attach_command(file, trial_id)} waits for it again")
    handle = client.get_workflow_handle(trial_id)
    with noting_interrupt(trial_id):
        await follow_on_console(err_console(), client, trial_id)
    try:
        await handle.result()
    except WorkflowFailureError as failure:
        if not isinstance(failure.cause, CancelledError):
            raise UserError(f"trial {trial_id}: {explain_job_failure(failure)}") from None
    status = (await with_trial_usages(client, await view_job(client, trial_id))).status
    assert isinstance(status, TrialStatus)
    if json:
        runs = [run.model_dump(mode="json") for run in status.runs]
        print_json({"trial": trial_id, "runs": runs})
    else:
        for line in outline_lines(status_outline(status), OUTCOME):
            print_result(line)
    return FAILED if status.status == "cancelled" else OK


async def _check_trial_exists(client: Client, trial_id: str) -> None:
    try:
        description = await client.get_workflow_handle(trial_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise UserError(f"--id {trial_id}: there is no such trial") from None
        raise
    if description.workflow_type != TRIAL:
        raise UserError(f"--id {trial_id}: a {description.workflow_type}, not a trial")
