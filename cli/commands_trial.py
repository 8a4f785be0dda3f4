"""The command trial: one job under several configurations, compared."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import typer
from temporalio.client import Client, WorkflowExecutionStatus

from cli.comparison import Share, compare_shares, wilson_interval
from cli.job_input import check_id, check_size, new_id, start_workflow
from cli.options import Json
from cli.output import OK, UserError, print_json, print_result, run_async
from config.loader import load_agent
from config.schema.agent import ConfigError
from config.yaml_files import parse_yaml
from engine.connection import connect_client
from protocol.payloads import InvalidPayload, read_object
from protocol.trial import TrialRun, TrialStart

TRIAL = "Trial"
POLL_SECONDS = 1.0
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
    """Run one job several times under two or more configurations, and compare how often it ends.

    FILE names the start, or a fork of a job's phase, the configurations and the number of runs.
    Ctrl-C ends the waiting, not the trial.
    """
    stem = re.sub(r"[^A-Za-z0-9-]+", "-", file.stem).strip("-") or "trial"
    trial_id = new_id(stem) if id is None else id
    check_id(trial_id)
    if attach and id is None:
        raise UserError("--attach: goes with --id, which names the trial")
    start = read_trial(file)
    return run_async(_run_trial(trial_id, start, attach=attach, json=json))


def read_trial(file: Path) -> TrialStart:
    """Return the trial of a file. Raises UserError."""
    try:
        data = parse_yaml(file.read_text(encoding="utf-8"), f"{file}: not valid YAML")
        start = read_object(TrialStart, data, str(file))
        for name in start.configurations:
            job = start.job_start(name)
            if job.get("agent"):
                load_agent(job["agent"], job.get("set") or {})
    except OSError as error:
        raise UserError(f"{file}: {(error.strerror or str(error)).lower()}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not UTF-8 text ({error.reason})") from None
    except (InvalidPayload, ConfigError) as wrong:
        text = str(wrong)
        raise UserError(text if text.startswith(str(file)) else f"{file}: {text}") from None
    return start


async def _run_trial(trial_id: str, start: TrialStart, *, attach: bool, json: bool) -> int:
    client = await connect_client()
    if not attach:
        data = start.model_dump(mode="json")
        check_size(data)
        await start_workflow(client, trial_id, data, TRIAL)
    runs = await _follow_trial(client, trial_id)
    if json:
        print_json({"trial": trial_id, "runs": [run.model_dump(mode="json") for run in runs]})
        return OK
    print_result(trial_id)
    for line in table_lines(runs):
        print_result(line)
    return OK


async def _follow_trial(client: Client, trial_id: str) -> list[TrialRun]:
    handle = client.get_workflow_handle(trial_id)
    while (await handle.describe()).status is WorkflowExecutionStatus.RUNNING:  # noqa: ASYNC110
        await asyncio.sleep(POLL_SECONDS)
    status: dict[str, Any] = await handle.query("status")
    return [TrialRun.model_validate(run) for run in status["runs"]]


def table_lines(runs: list[TrialRun]) -> list[str]:
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
    return [*lines, *compare_shares(shares)]


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(trial)
