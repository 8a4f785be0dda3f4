"""Parses the repository and the branch to push from the command line."""

from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cli.output import UserError
from protocol.publishing import Publish
from protocol.repository_start import RepositoryStart
from protocol.validation_errors import first_validation_errors

OPTIONS = {
    "url": "--repository",
    "ref": "--ref",
    "depth": "--depth",
    "subfolder": "--subfolder",
    "token_variable": "--token-variable",
    "branch": "--publish",
    "remote": "--publish-to",
}
"""Command-line options by input key."""


def repository_input_fields(
    repository: str | None,
    ref: str | None,
    depth: int | None,
    folder: Path | None,
    subfolder: str,
    token_variable: str | None,
) -> dict[str, Any]:
    """Return the input's `repository` from the options; empty without any. Raises UserError."""
    fields = {
        "url": repository,
        "ref": ref,
        "depth": depth,
        "folder": str(folder) if folder else None,
        "subfolder": subfolder,
        "token_variable": token_variable,
    }
    named = {key: value for key, value in fields.items() if value}
    if not named:
        return {}
    if not (repository or folder):
        raise UserError("give the repository to work on: --repository URL or --folder PATH")
    try:
        RepositoryStart.model_validate(named)
    except ValidationError as error:
        why = _name_repository_options(error)
        if repository and (place := Path(repository).expanduser()).is_dir():
            why += (
                f"; for a folder of this machine --folder {repository}, or for its commits alone "
            )
            why += f"--repository {place.absolute().as_uri()}"
        raise UserError(why) from None
    return named


def publish_input_fields(
    branch: str | None, remote: str, repository: dict[str, Any] | None, *, approve: bool
) -> dict[str, Any]:
    """Return the input's `publish` from the options.

    Args:
        branch: Branch to push to; None pushes nothing.
        remote: Address to push to; empty for the repository's own.
        repository: The input's `repository`; None for a fork, which has the original job's.
        approve: Whether a person has to approve the push.

    Raises:
        UserError: The options cannot be used together.
    """
    if branch is None:
        if remote or approve:
            raise UserError("--publish BRANCH names the branch that is pushed")
        return {}
    if repository == {}:
        raise UserError("--publish goes with --repository URL or --folder PATH")
    named: dict[str, Any] = {"branch": branch}
    if remote:
        named["remote"] = remote
    if approve:
        named["approve"] = True
    try:
        publish = Publish.model_validate(named)
        if repository is not None:
            publish.completed(RepositoryStart.model_validate(repository))
    except ValidationError as error:
        raise UserError(_name_repository_options(error)) from None
    except ValueError as error:
        raise UserError(str(error)) from None
    return named


def _name_repository_options(error: ValidationError) -> str:
    """Return the error with the option it concerns."""
    key, colon, why = first_validation_errors(error).partition(": ")
    return f"{OPTIONS.get(key, key)}{colon}{why}"
