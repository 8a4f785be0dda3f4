"""Runs git against people's remotes, with credentials from a variable of the worker."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from activities.checkpoints.git import run_git
from activities.redaction.credentials import api_key_credential
from config.schema.agent import ConfigError

USER, TOKEN = "REMOTE_GIT_USER", "REMOTE_GIT_TOKEN"
_HELPER = (
    f'!f() {{ test "$1" = get && printf "username=%s\\npassword=%s\\n" "${USER}" "${TOKEN}"; }}; f'
)
ANY_USER = "git"
"""User name for servers that expect a token and ignore the name, unless the address has one."""
SECONDS = 3600


def run_remote_git(
    repository: Path | None,
    address: str,
    token_variable: str | None,
    *arguments: str,
    watch: Callable[[], None] | None = None,
    seconds: float = SECONDS,
) -> str:
    """Run a git command that contacts a remote; return its output.

    The credential is passed in the environment of that process only, never in an argument, file or
    setting.

    Raises ConfigError, GitNotInstalled, RemoteUnavailable.
    """
    options: list[str] = []
    variables: dict[str, str] = {}
    if token_variable:
        parts = urlsplit(address)
        scope = f"credential.{parts.scheme}://{parts.netloc.rpartition('@')[2]}.helper"
        # An empty helper disables those of the worker's own configuration.
        options = ["-c", f"{scope}=", "-c", f"{scope}={_HELPER}"]
        variables = {USER: parts.username or ANY_USER, TOKEN: read_remote_token(token_variable)}
    return run_git(
        repository, *options, *arguments, seconds=seconds, variables=variables, watch=watch
    )


def read_remote_token(variable: str) -> str:
    try:
        token = api_key_credential(variable)
    except ValueError as error:
        raise ConfigError(f"token_variable: {variable} {error}") from None
    if not token:
        raise ConfigError(f"token_variable: this worker has no variable {variable}; set it")
    return token
