"""Checks of everything a job needs, one line each, with remedies."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from temporalio.service import RPCError

from activities.redaction.credentials import without_credentials
from cli import server_checks
from cli.check import CHECK_TIMEOUT, Check
from cli.output import UserError, temporal_error_text
from config.agent_files import agent_names, load_agent
from config.schema.agent import ConfigError
from engine import logs
from engine.connection import client_options, connect_client, describe_model_connection
from engine.development import find_temporal_binary
from engine.errors import SetupError
from engine.otel import export_settings
from engine.workspaces_root import open_workspaces_root, workspaces_root
from protocol.git_address import git_address_without_user
from protocol.short_text import one_line

if TYPE_CHECKING:
    from openai import AsyncOpenAI

BEFORE_ROOT = "not looked at before there is a workspaces root"


async def run_checks(project: Path | None = None) -> AsyncIterator[Check]:
    """Yield all checks; a failing check often explains those after it.

    Args:
        project: File of a project, whose needs are checked too.
    """
    looks = {
        "temporal binary": _check_temporal_binary,
        "workspaces": _check_root,
        "store": _check_store,
        "configuration": _check_configuration,
        "variables of commands": _check_command_variables,
        "graph": _check_graph,
        "token vocabulary": _check_token_vocabulary,
        "sandbox": _check_sandbox,
        "git": _check_git,
        "remote": _check_remote,
        "log": _check_log_settings,
        "traces and metrics": _check_collectors,
    }
    for name, look in looks.items():
        try:
            yield await asyncio.to_thread(look)
        except SetupError as error:
            yield Check(name, False, str(error))
    if project:
        yield await asyncio.to_thread(_check_project_needs, project)
    yield await _check_model_endpoint()
    try:
        client = await connect_client()
    except SetupError as error:
        yield Check("server", False, str(error))
        return
    yield Check("server", True, str(client_options()["target_host"]))
    for check in server_checks.SERVER_CHECKS:
        try:
            yield await check(client)
        except RPCError as error:
            yield Check(
                check.__name__.removeprefix("check_").replace("_", " "),
                False,
                temporal_error_text(error),
            )


async def check_models() -> AsyncIterator[Check]:
    """Yield checks of what jobs need from their models."""
    from cli import model_checks  # noqa: PLC0415 - loads the activities

    try:
        models = model_checks.configured_models(load_agent("generalist"))
    except ConfigError as error:
        yield Check("configuration", False, str(error), "correct it")
        return
    for model in models:
        async for check in model_checks.check_model(model):
            several = len(models) > 1
            yield replace(check, name=f"{model.name}: {check.name}") if several else check


def _check_temporal_binary() -> Check:
    try:
        binary = find_temporal_binary()
        process = subprocess.run(
            [binary, "--version"], capture_output=True, text=True, timeout=5, check=True
        )
        return Check("temporal binary", True, f"{binary} ({process.stdout.strip()})")
    except (OSError, subprocess.SubprocessError) as error:
        return Check("temporal binary", False, f"does not run: {error}", "run `make setup` again")


def _check_root() -> Check:
    folder = workspaces_root()
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        # Not created here: a mistyped LONGHAUL_WORKSPACES must not become a new root.
        above = next(parent for parent in folder.absolute().parents if parent.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            why = f"{folder} is not there and cannot be made in {above}"
            return Check("workspaces", False, why, "set LONGHAUL_WORKSPACES to a folder that can")
        return Check("workspaces", True, f"{folder} is not there yet; the first worker makes it")
    except OSError as error:
        why = f"{folder} cannot be looked at ({error.strerror})"
        return Check("workspaces", False, why, "set LONGHAUL_WORKSPACES to a folder that can")
    root = open_workspaces_root(folder)
    return Check("workspaces", True, f"{root.path} (id {root.id})")


def _check_store() -> Check:
    folder = workspaces_root()
    if not os.access(folder, os.F_OK):
        return Check("store", True, BEFORE_ROOT)
    from activities.stores.errors import StoreUnavailableError  # noqa: PLC0415 - loads the database library
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415

    try:
        store = RelationalStore(open_workspaces_root(folder))
        store.run(lambda connection: None, seconds=CHECK_TIMEOUT.total_seconds())
    except StoreUnavailableError as error:
        return Check("store", False, str(error))
    return Check("store", True, store.display_address)


def _check_configuration() -> Check:
    from cli import config_checks  # noqa: PLC0415 - loads the activities

    wrong = [
        finding.problem
        for finding in config_checks.check_configuration(root=workspaces_root())
        if not finding.ok
    ]
    if wrong:
        more = f" (and {len(wrong) - 1} more: `starter.py config check`)" if wrong[1:] else ""
        return Check("configuration", False, f"{wrong[0]}{more}", "correct it")
    return Check("configuration", True, f"agents {', '.join(agent_names())}")


def _check_command_variables() -> Check:
    from activities.commands.variables import missing_variables  # noqa: PLC0415 - loads the activities

    name, missing, count = "variables of commands", list[str](), 0
    for agent in agent_names():
        try:
            shell = load_agent(agent).shell
        except ConfigError:
            continue  # the check of the configuration says what is wrong
        count += len(shell.environment)
        missing += [
            f"{agent}: {source} (for {variable})"
            for variable, source in missing_variables(shell).items()
        ]
    if missing:
        return Check(
            name, False, f"shell.environment names what is not set here: {', '.join(missing)}",
            "set them where workers start, or take them out of shell.environment",
        )  # fmt: skip
    return Check(name, True, f"{count} named, all set" if count else "none are named")


def _check_graph() -> Check:
    from activities.requirements.graph import (  # noqa: PLC0415 - commands start faster without
        GraphLimits,
        GraphQueryError,
        GraphUnavailableError,
        embedded_graph_folder,
        open_graph,
        selected_graph_url,
    )

    if not os.access(workspaces_root(), os.F_OK):
        return Check("graph", True, BEFORE_ROOT)
    folder = embedded_graph_folder(workspaces_root())
    if not selected_graph_url() and not folder.exists():
        return Check("graph", True, f"{folder} is not there yet; the first use makes it")
    try:
        root, schema = (
            open_workspaces_root(workspaces_root()),
            load_agent("generalist").graph_schema,
        )
        seconds = CHECK_TIMEOUT.total_seconds()
        with open_graph(
            root, schema, limits=GraphLimits(wait_seconds=seconds, seconds=seconds)
        ) as graph:
            kinds = [table.name for table in graph.schema()]
            where = "Neo4j" if selected_graph_url() else str(folder)
            return Check("graph", True, f"{where} ({', '.join(kinds) or 'empty'})")
    except (GraphUnavailableError, GraphQueryError, ConfigError) as error:
        return Check("graph", False, str(error))


def _check_token_vocabulary() -> Check:
    from activities.text import tokens  # noqa: PLC0415 - the vocabulary takes a moment to load

    # This text's token ids are published only for this encoding, so a wrong vocabulary shows.
    count = tokens.count_tokens("hello world")
    return Check("token vocabulary", count == 2, "o200k_base, offline", "run `make setup` again")


def _check_sandbox() -> Check:
    from activities.commands import sandbox  # noqa: PLC0415 - loads what only activities need

    program = sandbox.find_bwrap()
    if why := sandbox.sandbox_problem(program):
        # Only agents that run commands need it.
        return Check("sandbox", True, f"none, so the tool run_command is off: {why}")
    return Check("sandbox", True, f"{program}; commands can be run")


def _check_project_needs(file: Path) -> Check:
    from activities.commands.variables import missing_variable  # noqa: PLC0415
    from activities.projects.required_commands import failing_required_command, required_commands  # noqa: PLC0415 - loads the activities
    from cli.project_input import project_input_agents, read_project_file  # noqa: PLC0415

    name = "needs of the project"
    try:
        start = read_project_file(file)[0]
        agents = project_input_agents(start)
    except (UserError, ConfigError) as wrong:
        return Check(name, False, str(wrong), "correct the file")
    if why := failing_required_command(start, agents):
        return Check(name, False, why)
    if lacking := list(filter(None, (missing_variable(agent.shell) for agent in agents))):
        return Check(name, False, lacking[0])
    return Check(name, True, ", ".join(required_commands(start)) or "none are named")


def _check_git() -> Check:
    if program := shutil.which("git"):
        return Check("git", True, program)
    # Only some jobs need git, and the repair of a damaged checkpoint index.
    off = (
        "no job or project begins from a repository or pushes a branch, no workspace.remote, and "
        "no index of checkpoints that was damaged is made anew"
    )
    return Check("git", True, f"none, so {off}; install git, for example: apt install git")


def _check_remote() -> Check:
    from activities.checkpoints.checkpoint_remote import open_remote  # noqa: PLC0415 - loads git's library
    from activities.checkpoints.errors import GitNotInstalled, RemoteUnavailable  # noqa: PLC0415

    try:
        url = load_agent("generalist").workspace.remote
    except ConfigError as error:
        return Check("remote", False, str(error), "correct it")
    if url is None:
        return Check("remote", True, "none: checkpoints stay on the workspaces root")
    try:
        open_remote(url).check_access()
    except (GitNotInstalled, RemoteUnavailable) as away:
        return Check("remote", False, f"{git_address_without_user(url)}: {away}")
    return Check("remote", True, git_address_without_user(url))


def _check_log_settings() -> Check:
    try:
        return Check("log", True, f"{logs.log_format()}, from {logs.log_level('WARNING')} on")
    except SetupError as error:
        return Check("log", False, f"{error}: no worker starts")


def _check_collectors() -> Check:
    name, addresses = "traces and metrics", export_settings.collector_addresses()
    try:
        if addresses:
            export_settings.load_export_pipeline()
        for address in addresses:
            url = urlsplit(address)
            port = url.port or (443 if url.scheme == "https" else 80)
            if url.scheme not in ("http", "https") or not url.hostname:
                raise ValueError("expected an address such as http://127.0.0.1:4318")
            socket.create_connection((url.hostname, port), CHECK_TIMEOUT.total_seconds()).close()
    except (OSError, ValueError) as error:
        return Check(
            name, False, f"{without_credentials(address)} is not reached ({error}): they are lost",
            f"start the collector, or correct or unset {export_settings.ENDPOINT}",
        )  # fmt: skip
    targets = f"to {', '.join(map(without_credentials, addresses))}"
    return Check(name, True, targets if addresses else "not exported")


async def _listed_models(client: AsyncOpenAI) -> list[str]:
    """Return the models that an endpoint lists; empty if it has no such list."""
    import openai  # noqa: PLC0415 - takes a moment to load

    try:
        return [str(entry.id) async for entry in client.models.list()]
    except openai.APIStatusError as error:
        if error.status_code not in (404, 405, 501):
            raise
        problem: Exception = error
    except AttributeError:  # raised by the client if the response is not JSON
        problem = ValueError("what answers there lists no models")
    try:
        # An empty request costs nothing, and an endpoint that validates it is a working one.
        await client.post("/chat/completions", cast_to=object, body={})
    except (openai.BadRequestError, openai.UnprocessableEntityError):
        return []
    raise problem


def _is_same_model(listed: str, name: str) -> bool:
    """Return whether a listed model is the named one: Gemini lists it as `models/name`, Ollama as
    `name:latest`, and routers accept `name:variant` of a listed one."""
    return name in (listed, listed.removeprefix("models/"), listed.removesuffix(":latest")) or (
        name.rpartition(":")[0] == listed
    )


async def _check_model_endpoint() -> Check:
    from temporalio.exceptions import ApplicationError  # noqa: PLC0415

    from activities.model import endpoint  # noqa: PLC0415 - loads the openai client

    where = describe_model_connection()
    try:
        model = load_agent("generalist").model
        model = model.model_copy(update={"name": endpoint.endpoint_model_name(model)})
        client = endpoint.connect_endpoint(model).with_options(
            timeout=CHECK_TIMEOUT.total_seconds()
        )
        offered = await _listed_models(client)
    except ApplicationError as error:
        return Check("model endpoint", False, error.message)
    except ConfigError as error:
        return Check("model endpoint", False, str(error))
    # The client's errors and those of its transport have no common base.
    except Exception as error:
        # For a failed connection only the cause has the reason; a timeout's cause is empty.
        reason = one_line(str(error.__cause__ or "") or str(error), 200)
        return Check(
            "model endpoint", False, f"{where}: {reason}",
            "check OPENAI_BASE_URL and OPENAI_API_KEY",
        )  # fmt: skip
    if offered and not any(_is_same_model(entry, model.name) for entry in offered):
        return Check(
            "model endpoint", False, f"{where} does not list the model {model.name}",
            "set LONGHAUL_MODEL or model.name to one it offers",
        )  # fmt: skip
    return Check("model endpoint", True, f"{where}, model {model.name}")
