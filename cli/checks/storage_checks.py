"""The checks of `doctor` that concern what is stored: workspaces root, store, graph, remote."""

import os
from pathlib import Path

from cli.checks.check_result import CHECK_TIMEOUT, CheckResult
from cli.output import UserError
from cli.start.start_files import project_input_agents, read_project_file
from config.agent_files import load_agent
from config.schema.agent import ConfigError
from engine.root_location import open_workspaces_root, workspaces_root
from protocol.git_address import git_address_without_user

BEFORE_ROOT = "not looked at before there is a workspaces root"


def check_workspaces_root() -> CheckResult:
    folder = workspaces_root()
    try:
        folder.stat()
    except (FileNotFoundError, NotADirectoryError):
        # Not created here: a mistyped LONGHAUL_WORKSPACES must not become a new root.
        above = next(parent for parent in folder.absolute().parents if parent.exists())
        if not (above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
            why = f"{folder} is not there and cannot be made in {above}"
            return CheckResult(
                "workspaces", False, why, "set LONGHAUL_WORKSPACES to a folder that can"
            )
        return CheckResult(
            "workspaces", True, f"{folder} is not there yet; the first worker makes it"
        )
    except OSError as error:
        why = f"{folder} cannot be looked at ({error.strerror})"
        return CheckResult("workspaces", False, why, "set LONGHAUL_WORKSPACES to a folder that can")
    if not _has_root(folder):
        # It may be where a disk is to be mounted.
        message = f"{folder} is no workspaces root yet; the first worker makes it one"
        return CheckResult("workspaces", True, message)
    root = open_workspaces_root(folder)
    return CheckResult("workspaces", True, f"{root.path} (id {root.id})")


def _has_root(folder: Path) -> bool:
    return os.access(folder / ".longhaul" / "root-id", os.F_OK)


def check_store() -> CheckResult:
    folder = workspaces_root()
    if not _has_root(folder):
        return CheckResult("store", True, BEFORE_ROOT)
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415
    from activities.stores.store_errors import StoreUnavailableError  # noqa: PLC0415 - loads the database library

    try:
        store = RelationalStore(open_workspaces_root(folder))
        store.run(lambda connection: None, seconds=CHECK_TIMEOUT.total_seconds())
    except StoreUnavailableError as error:
        return CheckResult("store", False, str(error))
    return CheckResult("store", True, store.display_address)


def check_graph() -> CheckResult:
    from activities.requirements.graph import (  # noqa: PLC0415 - commands start faster without
        interface,
        open_graph,
        selected_graph_url,
    )
    from activities.requirements.graph.embedded import embedded_graph_folder  # noqa: PLC0415

    if not _has_root(workspaces_root()):
        return CheckResult("graph", True, BEFORE_ROOT)
    folder = embedded_graph_folder(workspaces_root())
    if not selected_graph_url() and not folder.exists():
        return CheckResult("graph", True, f"{folder} is not there yet; the first use makes it")
    try:
        root, schema = (
            open_workspaces_root(workspaces_root()),
            load_agent("generalist").graph_schema,
        )
        seconds = CHECK_TIMEOUT.total_seconds()
        with open_graph(
            root, schema, limits=interface.GraphLimits(wait_seconds=seconds, seconds=seconds)
        ) as graph:
            kinds = [table.name for table in graph.schema()]
            where = "Neo4j" if selected_graph_url() else str(folder)
            return CheckResult("graph", True, f"{where} ({', '.join(kinds) or 'empty'})")
    except (interface.GraphUnavailableError, interface.GraphQueryError, ConfigError) as error:
        return CheckResult("graph", False, str(error))


def check_remote() -> CheckResult:
    try:
        url = load_agent("generalist").workspace.remote
    except ConfigError as error:
        return CheckResult("remote", False, str(error), "correct it")
    return _check_remote_access("remote", url)


def check_project_remote(file: Path) -> CheckResult:
    """Check the remote that a project's file sets; all its agents have the same."""
    name = "remote of the project"
    try:
        agents = project_input_agents(read_project_file(file)[0])
    except (UserError, ConfigError) as wrong:
        return CheckResult(name, False, str(wrong), "correct the file")
    return _check_remote_access(name, agents[0].workspace.remote)


def _check_remote_access(name: str, url: str | None) -> CheckResult:
    from activities.checkpoints.checkpoint_errors import GitNotInstalled, RemoteUnavailable  # noqa: PLC0415
    from activities.checkpoints.remote import open_remote  # noqa: PLC0415 - loads git's library

    if url is None:
        return CheckResult(name, True, "none: checkpoints stay on the workspaces root")
    try:
        open_remote(url).check_access()
    except (GitNotInstalled, RemoteUnavailable) as error:
        return CheckResult(name, False, f"{git_address_without_user(url)}: {error}")
    return CheckResult(name, True, git_address_without_user(url))
