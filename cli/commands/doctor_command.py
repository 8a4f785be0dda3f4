"""The command `doctor`: checks of everything a job needs."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cli.checks.check_result import CheckResult
from cli.options import Json
from cli.output import FAILED, OK, print_advice, print_json
from cli.temporal_errors import run_server_work


def doctor(
    project: Annotated[
        Path | None,
        typer.Argument(help="A project's file, whose needs and remote are tested as well."),
    ] = None,
    model: Annotated[
        bool,
        typer.Option(
            "--model",
            help="Instead, test the configured models in two turns with the agent's tools. It "
            "costs about 10,000 tokens for each model.",
        ),
    ] = False,
    agent: Annotated[
        str, typer.Option(help="The agent whose models and tools `--model` tests.")
    ] = "generalist",
    json: Json = False,
) -> int:
    """Check everything a job needs, and say how to fix what is wrong."""
    # Loading the activities loads the tools, which are among what is checked.
    from activities.toolkit.own_tools import collecting_tool_problems  # noqa: PLC0415

    with collecting_tool_problems() as tool_problems:
        from cli.checks.doctor import run_checks  # noqa: PLC0415
        from cli.checks.model_checks import check_models  # noqa: PLC0415

    async def print_checks() -> list[CheckResult]:
        results = []
        examined = check_models(agent) if model else run_checks(project, tool_problems)
        async for check in examined:
            results.append(check)
            if not json:
                print_advice(check.as_line())
        return results

    results = run_server_work(print_checks())
    if json:
        print_json([asdict(check) for check in results])
    return OK if all(check.ok for check in results) else FAILED
