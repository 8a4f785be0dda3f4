"""The command trial: one job under several configurations, compared."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from temporalio.client import Client, WorkflowFailureError, WorkflowQueryFailedError
from temporalio.exceptions import CancelledError
from temporalio.service import RPCError, RPCStatusCode

from cli import staging
from cli.comparison import Share, compare_shares, wilson_interval
from cli.job_input import check_input_size, check_job_id, new_job_id, start_workflow
from cli.jobs import explain_failure
from cli.options import Json
from cli.output import (
    FAILED,
    OK,
    UserError,
    print_json,
    print_note,
    print_result,
    run_async,
)
from config.loader import load_agent
from config.schema.agent import ConfigError
from config.yaml_files import parse_yaml
from engine.connection import connect_client, workspaces_root
from protocol.payloads import InvalidPayload, read_payload_object
from protocol.requests import Usage
from protocol.trial import TrialRun, TrialStart

TRIAL = "Trial"
OVER = ("completed", "failed", "late")
"""A cancelled run shows nothing about its configuration."""


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
    check_job_id(trial_id)
    if attach and id is None:
        raise UserError("--attach: goes with --id, which names the trial")
    start = read_trial_file(file)
    return run_async(_run_trial(trial_id, start, attach=attach, json=json))


def read_trial_file(file: Path) -> TrialStart:
    """Return the trial of a file. Raises UserError."""
    try:
        data = parse_yaml(file.read_text(encoding="utf-8"), f"{file}: not valid YAML")
        start = read_payload_object(TrialStart, data, str(file))
        limits: list[int] = []
        for name in start.configurations:
            job = start.job_start(name)
            if job.get("agent"):
                limit = load_agent(job["agent"], job.get("set") or {}).limits.file_bytes
                limits.append(limit)
    except OSError as error:
        raise UserError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text ({error.reason})") from None
    except (InvalidPayload, ConfigError) as wrong:
        text = str(wrong)
        raise UserError(text if text.startswith(str(file)) else f"{file}: {text}") from None
    if limits and (documents := start.start.get("documents")):
        local = [
            text if text.startswith(("http://", "https://")) else str(file.parent / text)
            for text in documents
        ]
        root = workspaces_root()
        start.start["documents"] = staging.stage_documents(local, root, max(limits))
    return start


async def _run_trial(trial_id: str, start: TrialStart, *, attach: bool, json: bool) -> int:
    client = await connect_client()
    if attach:
        await _check_trial(client, trial_id)
    else:
        data = start.model_dump(mode="json")
        check_input_size(data)
        await start_workflow(client, trial_id, data, TRIAL)
    print_note(f"trial    {trial_id}; `starter.py trial FILE --id {trial_id} --attach` waits again")
    handle = client.get_workflow_handle(trial_id)
    cancelled = False
    try:
        await handle.result()
    except WorkflowFailureError as failure:
        cancelled = isinstance(failure.cause, CancelledError)
        if not cancelled:
            raise UserError(f"trial {trial_id}: {explain_failure(failure)}") from None
    status: dict[str, Any] = await handle.query("status")
    runs = [TrialRun.model_validate(run) for run in status["runs"]]
    for run in runs:
        if run.usage is None and run.status in OVER:
            run.usage = await _job_usage(client, run.job)
    if json:
        print_json({"trial": trial_id, "runs": [run.model_dump(mode="json") for run in runs]})
    else:
        for line in trial_table_lines(runs):
            print_result(line)
    return FAILED if cancelled else OK


async def _job_usage(client: Client, job: str) -> Usage | None:
    """Return the usage of a job that did not complete; None if it is no longer known."""
    with suppress(RPCError, WorkflowQueryFailedError):
        usage = (await client.get_workflow_handle(job).query("status")).get("usage") or {}
        return Usage.model_validate({k: v for k, v in usage.items() if k in Usage.model_fields})
    return None


async def _check_trial(client: Client, trial_id: str) -> None:
    try:
        description = await client.get_workflow_handle(trial_id).describe()
    except RPCError as error:
        if error.status is RPCStatusCode.NOT_FOUND:
            raise UserError(f"--id {trial_id}: there is no such trial") from None
        raise
    if description.workflow_type != TRIAL:
        raise UserError(f"--id {trial_id}: a {description.workflow_type}, not a trial")


def trial_table_lines(runs: list[TrialRun]) -> list[str]:
    """Return a line for each configuration, and what their difference shows."""
    groups: dict[str, list[TrialRun]] = {}
    for run in runs:
        groups.setdefault(run.configuration, []).append(run)
    shares = {}
    lines = []
    for name, members in groups.items():
        ended = [run for run in members if run.status in OVER]
        completed = [run for run in ended if run.status == "completed"]
        shares[name] = share = Share(len(completed), len(ended))
        low, high = wilson_interval(share)
        lines.append(f"{name}: completed {share} (95 % interval {low:.0%} to {high:.0%})")
        usages = [run.usage for run in completed if run.usage]
        if usages:
            calls = [usage.model_calls for usage in usages]
            tokens = [usage.prompt_tokens + usage.completion_tokens for usage in usages]
            lines.append(
                f"  of completed runs: calls {median(calls):g} ({min(calls)} to {max(calls)}), "
                f"tokens {median(tokens):g} ({min(tokens)} to {max(tokens)}), "
                f"refused calls {sum(usage.refused_calls for usage in usages)}, "
                f"rewinds {sum(run.rewinds for run in completed)}, "
                f"cost {sum(usage.cost for usage in usages):.4f}"
            )
        spent = [run.usage for run in ended if run.usage]
        if len(ended) > len(completed) and spent:
            lines.append(
                f"  of all {len(spent)} runs: calls {sum(usage.model_calls for usage in spent)}, "
                f"tokens {sum(usage.prompt_tokens + usage.completion_tokens for usage in spent)}, "
                f"cost {sum(usage.cost for usage in spent):.4f}"
            )
    return [*lines, *compare_shares(shares)]


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(trial)
