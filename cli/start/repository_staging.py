"""Passes a local folder of code to the worker through the workspaces root and the remote."""

from pathlib import Path
from typing import Any

from cli.output import UserError
from config.schema.agent import AgentConfig, ConfigError
from engine.root_location import open_workspaces_root, workspaces_root
from protocol.git_address import git_address_without_user
from protocol.repository_start import STAGED


def stage_repository(
    repository: dict[str, Any], agents: list[AgentConfig], beside: Path | None = None
) -> dict[str, Any]:
    """Stage a local folder on the workspaces root and in the remote; return the changed input.

    Args:
        agents: Agents whose limits apply.
        beside: Folder to which a relative path refers; None for the current folder.

    Raises:
        UserError: The folder cannot be staged.
    """
    folder = repository.get("folder")
    if not folder or folder.startswith(STAGED):
        return repository
    from activities.checkpoints.checkpoint_errors import GitNotInstalled  # noqa: PLC0415 - loads the activities
    from activities.source_repository.repository_bounds import RepositoryBounds  # noqa: PLC0415
    from activities.source_repository.staged_folder import stage_folder  # noqa: PLC0415

    try:
        path = (beside or Path()).joinpath(Path(folder).expanduser()).resolve()
        staged = stage_folder(
            path,
            open_workspaces_root(workspaces_root()).staged,
            RepositoryBounds.of_agents(*agents),
        )
        for remote in {config.workspace.remote for config in agents if config.workspace.remote}:
            _upload_staged_repository(path, staged, remote)
    except (ConfigError, GitNotInstalled, RuntimeError) as problem:
        raise UserError(str(problem)) from None
    except OSError as error:
        raise UserError(f"the folder {folder} cannot be staged: {error}") from None
    return {**repository, "folder": staged}


def _upload_staged_repository(path: Path, staged: str, remote: str) -> None:
    """Put a staged folder into the remote, from where workers elsewhere take it.

    Raises:
        UserError: the remote cannot be used.
        OSError.
    """
    from activities.checkpoints import GitNotInstalled, RemoteUnavailable  # noqa: PLC0415
    from activities.checkpoints.remote_files import store_remote_folder  # noqa: PLC0415 - takes a moment
    from activities.source_repository.staged_folder import carried_staged_folder  # noqa: PLC0415

    name = staged.removeprefix(STAGED).partition("/")[0]
    try:
        store_remote_folder(
            remote,
            open_workspaces_root(workspaces_root()).staged / name,
            carried_staged_folder(open_workspaces_root(workspaces_root()).staged / name),
        )
    except (GitNotInstalled, RemoteUnavailable) as error:
        raise UserError(
            f"the folder {path} cannot be put into the remote "
            f"{git_address_without_user(remote)}, from where "
            f"workers take it: {error}"
        ) from None
