"""The command `doctor`: checks of everything a job needs."""

from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cli.checks.check_result import CheckResult
from cli.options import Json
from cli.output import FAILED, OK, print_advice, print_json, print_result
from cli.temporal_errors import run_server_work


def doctor(
    project: Annotated[
        str | None,
        typer.Argument(
            help="A project's file, whose needs and remote are tested as well; with --leave, a "
            "job, an agent or a project's file.",
            metavar="FILE|JOB|AGENT",
        ),
    ] = None,
    leave: Annotated[
        str,
        typer.Option(
            help="Instead, name what would stop or harm the job while nobody is there for so "
            "long. It sends a test notification.",
            metavar="48h",
        ),
    ] = "",
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
        from cli.checks.doctor import run_doctor_checks  # noqa: PLC0415
        from cli.checks.leave_facts import check_absence, parse_absence_hours  # noqa: PLC0415
        from cli.checks.model_checks import check_models  # noqa: PLC0415

    def choose_checks() -> AsyncIterator[CheckResult]:
        if leave:
            return check_absence(project or agent, parse_absence_hours(leave))
        if model:
            return check_models(agent)
        return run_doctor_checks(Path(project) if project else None, tool_problems)

    async def print_checks() -> list[CheckResult]:
        results = []
        async for check in choose_checks():
            results.append(check)
            if not json:
                print_advice(check.as_line())
        return results

    results = run_server_work(print_checks())
    if leave and not results and not json:
        print_result(f"nothing known would stop it within {leave}")
    if json:
        print_json([asdict(check) for check in results])
    return OK if all(check.ok for check in results) else FAILED
