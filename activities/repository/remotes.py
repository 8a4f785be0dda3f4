"""Remotes of people's repositories: credentials by a variable of the worker, and what git says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from activities.checkpoints.git import run_git
from activities.redaction.credentials import api_key
from config.schema.agent import ConfigError

USER, TOKEN = "REMOTE_GIT_USER", "REMOTE_GIT_TOKEN"
_HELPER = (
    f'!f() {{ test "$1" = get && printf "username=%s\\npassword=%s\\n" "${USER}" "${TOKEN}"; }}; f'
)
ANY_USER = "git"
"""Servers that take a token look at no user name, unless the address has one."""
SECONDS = 3600


def run_remote_git(
    repository: Path | None,
    address: str,
    token_variable: str | None,
    *arguments: str,
    watch: Callable[[], None] | None = None,
    seconds: float = SECONDS,
) -> str:
    """Run a git command that speaks to a remote; gives what it printed.

    The credential is in the environment of that one process: in no argument, file or setting.

    Raises:
        ConfigError: the worker lacks the variable.
        GitNotInstalled, RemoteUnavailable.
    """
    options: list[str] = []
    variables: dict[str, str] = {}
    if token_variable:
        parts = urlsplit(address)
        scope = f"credential.{parts.scheme}://{parts.netloc.rpartition('@')[2]}.helper"
        # The empty one takes out the helpers of the worker's own configuration.
        options = ["-c", f"{scope}=", "-c", f"{scope}={_HELPER}"]
        variables = {USER: parts.username or ANY_USER, TOKEN: read_token(token_variable)}
    return run_git(
        repository, *options, *arguments, seconds=seconds, variables=variables, watch=watch
    )


def read_token(variable: str) -> str:
    """The token in a variable of the worker. Raises ConfigError."""
    try:
        token = api_key(variable)
    except ValueError as wrong:
        raise ConfigError(f"token_variable: {variable} {wrong}") from None
    if not token:
        raise ConfigError(f"token_variable: this worker has no variable {variable}; set it")
    return token
