"""Runs the checks of everything a job needs, one line each, with remedies."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path

from temporalio.service import RPCError

from cli.checks import config_checks, host_checks, server_checks, storage_checks
from cli.checks.check_result import CheckResult
from cli.checks.model_checks import check_model_endpoint
from cli.temporal_errors import temporal_error_text
from engine.connection import client_options, connect_client
from engine.setup_errors import SetupError


async def run_doctor_checks(
    project: Path | None = None, tool_problems: Sequence[str] = ()
) -> AsyncIterator[CheckResult]:
    """Yield all checks; a failing check often explains those after it.

    Args:
        project: File of a project, whose needs and remote are checked too.
        tool_problems: What is wrong with files of tools of one's own, which are loaded before.
    """
    looks: dict[str, Callable[[], CheckResult]] = {
        "temporal binary": host_checks.check_temporal_binary,
        "workspaces": storage_checks.check_workspaces_root,
        "store": storage_checks.check_store,
        "own tools": partial(config_checks.list_own_tools, tool_problems),
        "configuration": config_checks.summarise_config_findings,
        "variables of commands": config_checks.check_command_variables,
        "graph": storage_checks.check_graph,
        "token vocabulary": host_checks.check_token_vocabulary,
        "sandbox": host_checks.check_sandbox,
        "git": host_checks.check_git,
        "remote": storage_checks.check_remote,
        "log": host_checks.check_log_settings,
        "traces and metrics": host_checks.check_collectors,
    }
    for name, look in looks.items():
        try:
            yield await asyncio.to_thread(look)
        except SetupError as error:
            yield CheckResult(name, False, str(error))
    if project:
        yield await asyncio.to_thread(config_checks.check_project_needs, project)
        yield await asyncio.to_thread(storage_checks.check_project_remote, project)
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
