"""Runs the checks of everything a job needs, one line each, with remedies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path

from temporalio.service import RPCError

from cli.checks import server_checks
from cli.checks.check_result import CheckResult
from cli.checks.config_checks import (
    check_command_variables,
    check_project_needs,
    list_own_tools,
    summarise_config_findings,
)
from cli.checks.installation_checks import (
    check_git,
    check_sandbox,
    check_temporal_binary,
    check_token_vocabulary,
)
from cli.checks.model_checks import check_model_endpoint
from cli.checks.storage_checks import (
    check_graph,
    check_project_remote,
    check_remote,
    check_store,
    check_workspaces_root,
)
from cli.checks.telemetry_checks import check_collectors, check_log_settings
from cli.temporal_errors import temporal_error_text
from engine.connection import client_options, connect_client
from engine.setup_errors import SetupError


async def run_checks(
    project: Path | None = None, tool_problems: Sequence[str] = ()
) -> AsyncIterator[CheckResult]:
    """Yield all checks; a failing check often explains those after it.

    Args:
        project: File of a project, whose needs and remote are checked too.
        tool_problems: What is wrong with files of tools of one's own, which are loaded before.
    """
    looks: dict[str, Callable[[], CheckResult]] = {
        "temporal binary": check_temporal_binary,
        "workspaces": check_workspaces_root,
        "store": check_store,
        "own tools": partial(list_own_tools, tool_problems),
        "configuration": summarise_config_findings,
        "variables of commands": check_command_variables,
        "graph": check_graph,
        "token vocabulary": check_token_vocabulary,
        "sandbox": check_sandbox,
        "git": check_git,
        "remote": check_remote,
        "log": check_log_settings,
        "traces and metrics": check_collectors,
    }
    for name, look in looks.items():
        try:
            yield await asyncio.to_thread(look)
        except SetupError as error:
            yield CheckResult(name, False, str(error))
    if project:
        yield await asyncio.to_thread(check_project_needs, project)
        yield await asyncio.to_thread(check_project_remote, project)
    yield await check_model_endpoint()
    try:
        client = await connect_client()
    except SetupError as error:
        yield CheckResult("server", False, str(error))
        return
    yield CheckResult("server", True, str(client_options()["target_host"]))
    for check in server_checks.SERVER_CHECKS:
        try:
            yield await check(client)
        except RPCError as error:
            yield CheckResult(
                check.__name__.removeprefix("check_").replace("_", " "),
                False,
                temporal_error_text(error),
            )
